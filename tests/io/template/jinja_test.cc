// What the records of Jinja2 (record_test.cc) cannot show: limits, lines, origins, what is left
// out.
#include "io/template/jinja.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/template/json_input.h"
#include "io/template/limits.h"

namespace inlay::jinja {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kInputs[] =
    R"({"m": "<Message>", "n": " x y ", "l": ["a", "b"], "d": {"k": "v"}, "u": "QUOTE'"})";

absl::StatusOr<Text> Render(const std::string& source, const Limits& limits = {},
                            const std::string& inputs = kInputs) {
  const auto parsed = Template::Parse(source);
  if (!parsed.ok()) return parsed.status();
  const auto value = ParseJson(inputs);
  EXPECT_TRUE(value.ok());
  RenderOptions options;
  options.limits = limits;
  return parsed->Render(*value, options);
}

std::string Error(const std::string& source, const Limits& limits = {}) {
  const auto text = Render(source, limits);
  return text.ok() ? absl::StrCat("rendered ", text->bytes())
                   : absl::StrCat(absl::StatusCodeToString(text.status().code()), " ",
                                  text.status().message());
}

// The text with what messages wrote in brackets.
std::string Marked(const std::string& source) {
  const auto text = Render(source);
  if (!text.ok()) return std::string(text.status().message());
  std::string out;
  size_t begin = 0;
  for (const OriginRun& run : text->runs()) {
    const auto part = text->bytes().substr(begin, run.end - begin);
    absl::StrAppend(
        &out, run.origin == Origin::kMessage ? absl::StrCat("[", part, "]") : std::string(part));
    begin = run.end;
  }
  return out;
}

TEST(JinjaTest, EveryByteKeepsItsOrigin) {
  EXPECT_EQ(Marked("a{{ m }}b"), "a[<Message>]b");
  EXPECT_EQ(Marked("{{ 'x' ~ m + 'y' }}"), "x[<Message>]y");
  EXPECT_EQ(Marked("{{ ('-' ~ n ~ '-') | trim('-') }}|{{ n.strip() }}|{{ n | trim }}"),
            "[ x y ]|[x y]|[x y]");
  EXPECT_EQ(Marked("{{ ('a' ~ m) | upper }}{{ m.lower() }}{{ m | title }}{{ m | capitalize }}"),
            "A[<MESSAGE><message><Message><message>]");
  EXPECT_EQ(Marked("{{ m | replace('<', '(') }}{{ 'a-b' | replace('-', m) }}"),
            "([Message>]a[<Message>]b");
  EXPECT_EQ(Marked("{{ l | join('|') }} {{ m.join('ab') }} {{ '.'.join(l) }}"),
            "[a]|[b] a[<Message>]b [a].[b]");
  EXPECT_EQ(Marked("{{ ('ab' ~ m)[1:4] }}{{ m[0] }}{{ m[::-1] }}{{ m | first }}{{ m | list }}"),
            "b[<M<>egasseM<<]['[<]', '[M]', '[e]', '[s]', '[s]', '[a]', '[g]', '[e]', '[>]']");
  EXPECT_EQ(Marked("{% for c in n.split() %}{{ c }}.{% endfor %}{{ m.partition('e')[0] }}"),
            "[x].[y].[<M]");
  EXPECT_EQ(Marked("{{ d | tojson }}{{ l }}{{ u | tojson }}"),
            "{\"[k]\": \"[v]\"}['[a]', '[b]']\"[QUOTE']\"");
  EXPECT_EQ(Marked("{{ '%s-%d' % (m, 5) }}{{ '{}+{x}'.format(m, x=l[0]) }}{{ m.format() }}"),
            "[<Message>]-5[<Message>]+[a<Message>]");
  EXPECT_EQ(Marked("{{ (m ~ '\\n' ~ m) | indent(2, true) }}"), "  [<Message>]\n  [<Message>]");
  EXPECT_EQ(Marked("{{ m | e }}{{ ('<' | safe) + m }}"), "[&lt;Message&gt;]<[&lt;Message&gt;]");
  EXPECT_EQ(Marked("{% set x %}<{{ m }}>{% endset %}{{ x * 2 }}"), "<[<Message>]><[<Message>]>");
  EXPECT_EQ(Marked("{% macro f(x) %}({{ x }}){{ caller() }}{% endmacro %}"
                   "{% call f(m) %}{{ n }}!{% endcall %}"),
            "([<Message>])[ x y ]!");
  EXPECT_EQ(Marked("{% filter upper %}a{{ m }}{% endfilter %}{{ m.center(11, '*') }}"),
            "A[<MESSAGE>]*[<Message>]*");
  EXPECT_EQ(Marked("{{ d.items() | list }}{{ d | dictsort }}{% for k in d %}{{ k }}{% endfor %}"),
            "[('[k]', '[v]')][('[k]', '[v]')][k]");
  EXPECT_EQ(Marked("{{ m | truncate(5, true, '..', 0) }}{{ m | length }}{{ strftime_now(m) }}"),
            "[<Me]..9[<Message>]");
  EXPECT_EQ(Marked("{{ ['b', m] | sort | first }}{{ [m, 'z'] | max }}{{ m or 'x' }}"),
            "[<Message>]z[<Message>]");
  EXPECT_EQ(Marked("{% macro f() %}{{ kwargs }}{% for k in kwargs %}{{ k }}{% endfor %}"
                   "{% endmacro %}{{ f(a=1, **d) }}{{ f(**dict(d, **{m: 2})) }}"),
            "{'a': 1, '[k]': '[v]'}a[k]{'[k]': '[v]', '[<Message>]': 2}[k<Message>]");
  EXPECT_EQ(Marked("{{ dict(b=1, **d) }}"), "{'b': 1, '[k]': '[v]'}");
  // The character that fills a field is of the format.
  EXPECT_EQ(Marked("{{ ('{:*<3}{:' ~ m[0] ~ '<3}').format('', '') }}"), "***[<<<]");
}

TEST(JinjaTest, KeysMayBeObjectsAndHoldThem) {
  const auto text = Render(
      "{% macro f() %}{% endmacro %}{% set ns = namespace() %}{% set d = {(range, 1): 'a', f: 'b', "
      "(ns,): 'c', ns: 'd'} %}{{ d[(range, true)] }}{{ d[f] }}{{ d[(ns,)] }}{{ d[ns] }}"
      "{{ (namespace(),) in d }}{{ (range,) in {} }}{{ [(f,), (f,), f] | unique | list | length }}"
      "{% for i in [1, 2] %}{{ (loop,) in {} }}{{ {loop: 5}[loop] }}{% endfor %}");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->bytes(), "abcdFalseFalse2False5False5");
  for (const std::string source : {"{{ ('a'.strip,) in {} }}", "{{ {'a'.strip: 1} }}",
                                   "{{ ((),) in {} }}", "{{ [([],)] | unique | list }}"}) {
    EXPECT_THAT(Error(source), HasSubstr("INVALID_ARGUMENT")) << source;
  }
}

TEST(JinjaTest, RefusesManyNames) {
  std::string parameters, arguments;
  for (int i = 0; i < 1001; ++i) {
    absl::StrAppend(&parameters, i > 0 ? "," : "", "p", i);
    absl::StrAppend(&arguments, i > 0 ? "," : "", "p", i, "=1");
  }
  EXPECT_THAT(Error("{% macro f(" + parameters + ") %}{% endmacro %}"),
              HasSubstr("INVALID_ARGUMENT line 1 of the template: a macro has more than 1000"));
  EXPECT_THAT(Error("{{ dict(" + arguments + ") }}"),
              HasSubstr("INVALID_ARGUMENT line 1 of the template: a call has more than 1000"));
  for (const std::string source :
       {"{{ [1] | map(attribute='.' * 64) | list }}", "{{ [] | sum('.' * 64) }}",
        "{{ '' | join('', attribute='.' * 64) }}", "{{ [] | sort(attribute=',' * 64) }}"}) {
    EXPECT_THAT(Error(source), HasSubstr("an attribute has 65 parts, and at most 64 are supported"))
        << source;
  }
}

TEST(JinjaTest, NamesTheLine) {
  EXPECT_EQ(Error("\n\n{{ nothing.x }}"),
            "INVALID_ARGUMENT line 3 of the template: 'nothing' is undefined");
  EXPECT_THAT(Error("{% macro f() %}\n{{ 1 + 'a' }}\n{% endmacro %}\n\n{{ f() }}"),
              HasSubstr("line 2"));
  EXPECT_THAT(Error("{{ 1 }}\n{% if %}"), HasSubstr("line 2"));
  EXPECT_EQ(Error("\n{{ raise_exception('line ' ~ 7) }}"), "FAILED_PRECONDITION line 7");
}

TEST(JinjaTest, RefusesWhatIsLeftOut) {
  for (const std::string source :
       {"{% include 'a' %}",
        "{% import 'a' as b %}",
        "{% from 'a' import b %}",
        "{% extends 'a' %}",
        "{% block a %}{% endblock %}",
        "{% autoescape true %}{% endautoescape %}",
        "{{ m | wordwrap }}",
        "{{ m | pprint }}",
        "{{ cycler(1) }}",
        "{{ lipsum() }}",
        "{{ joiner() }}",
        "{{ m.encode() }}",
        "{{ range }}",
        "{{ range(0, 9000000000000000000, 5000000000000000000) }}",
        "{{ range(9223372036854775807, 9223372036854775805, -1)[::-1] }}",
        "{{ namespace() }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ strftime_now('%Q') }}",
        "{{ m.strip }}",
        "{{ '\\N{DASH}' }}",
        "{{ 'a{0.b}'.format(1) }}",
        "{{ ('<' | safe) % m }}",
        "{{ '٣' | int }}",
        "{{ '٣' | float }}",
        "{{ '٣'.isdigit() }}"}) {
    EXPECT_THAT(Error(source), AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("line 1"))) << source;
  }
}

TEST(JinjaTest, EndsWithinItsSteps) {
  const std::string loops =
      "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(Error(loops, {.max_steps = 100000}), HasSubstr("OUT_OF_RANGE line 1"));
  const std::string big = "{% set a = 'ab' * 500000 %}{% set d = {(a,): 1} %}";
  for (const std::string work : {"a.replace('b', 'c')",
                                 "a | upper",
                                 "a.split('a')",
                                 "a.count('ab')",
                                 "a | tojson",
                                 "a == a ~ ''",
                                 "a in a ~ 'x'",
                                 "a | length",
                                 "a.strip('ba')",
                                 "a | list | length",
                                 "a.splitlines()",
                                 "a | reverse",
                                 "a[1:]",
                                 "a | indent",
                                 "a.title()",
                                 "{a: 1}[a]",
                                 "a | e",
                                 "a | trim",
                                 "a.startswith(a)",
                                 "a.isalpha()",
                                 "a.count('')",
                                 "a.rfind('')",
                                 "a.rindex('')",
                                 "a.find('b', 9)",
                                 "a.replace('a', 'b', 0)",
                                 "a.format()",
                                 "'b' | truncate(9999999, end=a)",
                                 "1 | tojson(indent=a)",
                                 "dict([[a, 1]])",
                                 "dict(d)",
                                 "(a,) in {}",
                                 "d == d",
                                 "(a ~ 'c').find(a[1:])"}) {
    EXPECT_THAT(Error(big + "{% for i in range(99) %}{% set b = " + work + " %}{% endfor %}",
                      {.max_steps = 300000}),
                HasSubstr("OUT_OF_RANGE"))
        << work;
  }
}

TEST(JinjaTest, CallsOfManyNamesTakeSteps) {
  std::string parameters, entries, fields;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&parameters, i > 0 ? "," : "", "p", i);
    absl::StrAppend(&entries, i > 0 ? "," : "", "'p", i, "': 1");
    absl::StrAppend(&fields, "{p999}");
  }
  const Limits limits = {.max_steps = 50000};
  EXPECT_THAT(Error("{% macro f(" + parameters + ") %}{% endmacro %}" +
                        "{% for i in range(20) %}{{ f() }}{% endfor %}",
                    limits),
              HasSubstr("OUT_OF_RANGE"));
  EXPECT_THAT(Error("{{ '" + fields + "'.format(**{" + entries + "}) }}", limits),
              HasSubstr("OUT_OF_RANGE"));
}

TEST(JinjaTest, StaysWithinItsMemory) {
  const Limits limits = {.max_bytes = size_t{1} << 20};
  for (const std::string source :
       {"{{ 'x' * 2000000 }}", "{{ 9000000000000000000 * 'xx' }}", "{% set x = [0] * 999999999 %}",
        "{{ 'x'.center(9999999) }}", "{{ '%9999999d' % 1 }}", "{{ '{:9999999}'.format('a') }}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}",
        "{% set a = 'a' * 9999 %}{{ a | replace('a', a) }}",
        "{% set a = 'a' * 9999 %}{{ a | list | join(a) }}", "{{ [1] | batch(99999999, 1) | list }}",
        "{{ [1] | slice(99999999) | list }}", "{{ 'a' | indent(9999999, true) }}",
        "{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}",
        "{{ [1, 2] | tojson(indent=9999999) }}", "{{ ('a' * 700000) | list }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% endfor %}{{ ns.x }}",
        // One string, many times in a key.
        "{% set t = ('x' * 99999,) * 200 %}{{ t in {} }}",
        "{% set t = ('x' * 99999,) * 200 %}{{ {t: 1} | length }}",
        "{% set t = ('x' * 99999,) * 200 %}{{ {}[t] }}",
        "{% set t = ('x' * 99999,) * 200 %}{{ {}.get(t) }}",
        "{% set t = ('x' * 99999,) * 200 %}{{ dict([[t, 1]]) | length }}",
        "{% set t = ('x' * 99999,) * 200 %}{{ [t] | unique | list | length }}",
        "{% set x = 'x' * 99999 %}{% set ns = namespace(l=[]) %}{% for i in range(9) %}"
        "{% set ns.l = ns.l + [(x, x, i)] %}{% endfor %}{{ ns.l | unique | list | length }}"}) {
    EXPECT_THAT(Error(source, limits), HasSubstr("OUT_OF_RANGE")) << source;
  }
  // What is let go of does not count.
  const auto text =
      Render("{% for i in range(99) %}{% set a = 'x' * 99999 %}{% endfor %}ok", limits);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->bytes(), "ok");
}

TEST(JinjaTest, IsNotTooDeep) {
  EXPECT_THAT(Error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(Error("{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}"),
              HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(Error("{% set ns = namespace(x=[]) %}{% for i in range(999) %}"
                    "{% set ns.x = [ns.x] %}{% endfor %}"),
              HasSubstr("INVALID_ARGUMENT"));
  std::string maps = "{{ 'a' | map(";
  for (int i = 0; i < 5000; ++i) maps += "'map', ";
  EXPECT_THAT(Error(maps + "'upper') | list }}"), HasSubstr("INVALID_ARGUMENT"));
  const auto repeat = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeat("(", 100000), "{{ " + repeat("[", 100000),
        "{{ a" + repeat(".b", 100000) + " }}", "{{ a" + repeat("|e", 100000) + " }}",
        "{{ 1" + repeat("+1", 100000) + " }}", "{{ " + repeat("not ", 100000) + "1 }}",
        "{{ " + repeat("-", 100000) + "1 }}", "{{ 1" + repeat(" if 1 else 1", 100000) + " }}",
        repeat("{% if 1 %}", 100000), "{{ a" + repeat("[0]", 100000) + " }}",
        "{{ a" + repeat("()", 100000) + " }}", "{% set " + repeat("(", 100000),
        "{{ a" + repeat(" and a", 100000) + " }}",
        "{{ a" + repeat(" is defined", 1) + repeat(" | d", 100000) + " }}"}) {
    EXPECT_THAT(Error(source), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("line 1")))
        << source.substr(0, 40);
  }
  // Long but flat.
  const auto text =
      Render("{{ 'a'" + repeat(" ~ 'a'", 10000) + " }}" + repeat("{% if 1 %}{% endif %}", 1000));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->size(), 10001u);
}

// Checked by the sanitizers: objects that refer to each other in a circle are freed.
TEST(JinjaTest, FreesCircles) {
  const auto text = Render(
      "{% set ns = namespace() %}{% set ns.self = [ns] %}{% set ns.f = ns.self.index %}"
      "{% for i in [1, 2] %}{% set ns.loop = loop %}{{ loop.changed(loop, [loop]) }}{% endfor %}"
      "{% macro f() %}{% set ns.g = f %}{% endmacro %}{{ f() }}{{ ns.loop.index }}"
      "{% for i in [1] %}{% macro g() %}{{ i }}{% endmacro %}{% set ns.h = g %}{% endfor %}"
      "{% for i in [1, 2] %}{{ loop.changed([loop]) }}{{ nothing.x }}{% endfor %}");
  EXPECT_FALSE(text.ok());
}

TEST(JinjaTest, ALoopThatIsOverHasNothing) {
  const auto text = Render(
      "{% set ns = namespace() %}{% for i in [1, 2] recursive %}{% set ns.l = loop %}{% endfor %}"
      "{{ ns.l.previtem }}|{{ ns.l.nextitem }}|{{ ns.l.last }}");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->bytes(), "||True");
  EXPECT_THAT(Error("{% set ns = namespace() %}{% for i in [1] recursive %}{% set ns.l = loop %}"
                    "{% endfor %}{{ ns.l([1]) }}"),
              HasSubstr("INVALID_ARGUMENT"));
}

TEST(JinjaTest, ThreadsShareTemplateAndInputs) {
  const auto parsed = Template::Parse(
      "{% macro f(x) %}{{ x | upper }}{% endmacro %}{% for a in l * 50 %}{{ f(a) ~ m }}"
      "{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  const auto inputs = ParseJson(kInputs);
  ASSERT_TRUE(inputs.ok());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts)
    threads.emplace_back([&] { text = std::string(parsed->Render(*inputs)->bytes()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts[0].size(), 1000u);
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

TEST(JinjaTest, IntegersBeyond64BitsArePrintedButNotComputedWith) {
  const std::string inputs =
      R"({"n": 123456789012345678901234567890, "m": -9223372036854775809, "l": [1, 2]})";
  const auto show = [&](const std::string& source) {
    const auto text = Render(source, {}, inputs);
    return std::string(text.ok() ? text->bytes() : text.status().message());
  };
  EXPECT_EQ(show("{{ n }} {{ [m] | tojson }} {{ '%d' % m }}"),
            "123456789012345678901234567890 [-9223372036854775809] -9223372036854775809");
  EXPECT_EQ(show("{{ n == n }} {{ n == m }} {{ n == 1 }} {{ n == 1e29 }} {{ m == -2.0 ** 63 }}"),
            "True False False False False");
  EXPECT_EQ(show("{{ n | float }} {{ '{:,}'.format(m) }}"),
            "1.2345678901234568e+29 -9,223,372,036,854,775,809");
  // A float that equals one is the same key.
  EXPECT_EQ(
      Render("{{ {10.0 ** 20: 'x'}[n] }}{{ n == 1e20 }}", {}, R"({"n": 100000000000000000000})")
          ->bytes(),
      "xTrue");
  for (const char* use : {"n + 1", "1 + n", "n * n", "n / 2.0", "-n", "n < 1", "n | abs",
                          "n | round", "n % 2", "n is odd", "range(n)", "l | sum(start=n)",
                          "'a' * n", "'%x' % n", "l[:n]", "[n, 1] | sort", "'abc'.split('b', n)"}) {
    const std::string shown = show(absl::StrCat("{{ ", use, " }}"));
    EXPECT_THAT(shown,
                testing::AnyOf(HasSubstr("int of more than 64 bits"), HasSubstr("not supported")))
        << use;
  }
}

}  // namespace
}  // namespace inlay::jinja
