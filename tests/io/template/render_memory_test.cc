// Templates while memory runs out: whatever allocation fails, from then on or once, the process
// goes on.
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "io/template/jinja.h"
#include "io/template/json_input.h"
#include "tests/failing_memory.h"

namespace inlay::jinja {
namespace {

using failing_memory::Fault;

// Scopes that a macro keeps, calls, loops of all kinds and blocks, whose ends tidy up; and texts of
// numbers and of characters that are escaped.
constexpr char kSource[] = R"(
{%- for m in messages %}
  {%- macro quoted(text, mark='a mark that is longer than a short string') %}
    {{- mark }}{{ text | upper }}{{ caller() if caller else '' }}
  {%- endmacro %}
  {{- quoted(m.content) }}
  {%- call quoted(m.role) %}{{ loop.index ~ m.content }}{% endcall %}
{%- endfor %}
{%- for m in messages if m.role == 'user' recursive %}
  {{- m.content.strip() }}{{ loop(m.parts) if m.parts else '' }}
{%- else %}none{%- endfor %}
{%- set shown %}{% filter lower %}{{ messages | tojson }}{{ messages }}{% endfilter %}{% endset %}
{%- set ns = namespace(found=[]) %}
{%- set ns.found = messages | map(attribute='role') | list | sort | unique | list %}
{{- shown ~ ns.found ~ 3.14159 | round(2) ~ '%.30f' | format(2.5) ~ '{:08.3f}{:x}'.format(1.5, 255) }}
{{- strftime_now('%Y %f') }}{{ {1e30: 1}[1e30] }})";

constexpr char kInputs[] = R"({"messages": [
  {"role": "user", "content": "a text that is longer than a short string \u0001 \u200b",
   "parts": [{"role": "user", "content": "another text that is longer than a short one"}]},
  {"role": "assistant", "content": "the answer, which is also longer than a short string"}]})";

TEST(RenderMemoryTest, SurvivesEveryAllocationThatFails) {
  const absl::StatusOr<Template> parsed = Template::Parse(kSource);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const absl::StatusOr<Value> inputs = ParseJson(kInputs);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const RenderOptions options;
  const absl::StatusOr<Text> rendered = parsed->Render(*inputs, options);
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  int failures = 0;
  for (const Fault fault : {Fault::kOnce, Fault::kFromThenOn}) {
    long allocations = 0;
    for (bool has_failed = true; has_failed; ++allocations) {
      failing_memory::FailAfter(allocations, fault);
      const absl::StatusOr<Text> text = parsed->Render(*inputs, options);
      failing_memory::Stop();
      has_failed = failing_memory::has_failed;
      if (has_failed) ++failures;
      // The library's own std::stable_sort does with less memory where there is little.
      if (text.ok()) {
        EXPECT_EQ(text->bytes(), rendered->bytes());
      } else {
        EXPECT_TRUE(has_failed) << text.status();
        EXPECT_EQ(text.status().code(), absl::StatusCode::kResourceExhausted);
      }
    }
  }
  EXPECT_GT(failures, 400);
}

}  // namespace
}  // namespace inlay::jinja
