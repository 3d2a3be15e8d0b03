#include "gemma_like/grammar/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "tests/gemma_like/grammar/schema_rows.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

TEST(JsonSchema, Types) {
  ExpectRows({
      {"true",
       {"null", "1", "'a'", "[1,{'a':[]}]", "{'a':{},'b':2}"},
       {"", "nul", "[1,]", "{a:1}", "1 ", " 1", "[] ", "\n{}", "{}\n", "'a' "}},
      {"{}", {"false", "-1.5e-7"}, {"01", "'\n'"}},
      {"{'type':'null'}", {"null"}, {"0", "false"}},
      {"{'type':'boolean'}", {"true", "false"}, {"null", "1"}},
      {"{'type':'integer'}",
       {"0", "-12", "123456789012345678901234567890"},
       {"1.0", "1e3", "01", "'1'"}},
      {"{'type':'number'}", {"0", "1.50", "-1e+21", "2e-07"}, {".5", "1.", "1e999", "'1'"}},
      {"{'type':'string'}",
       {"''", "'a\\u00e9\\n\\/😀'", "'\\ud83d\\ude00'"},
       {"'\\ud83d'", "'\t'", "'\\x'", "a", "'"}},
      {"{'type':'array'}", {"[]", "[1,'a',[null]]", "[ 1 ]"}, {"{}", "[1", "[,]"}},
      {"{'type':'object'}", {"{}", "{'a':1,'a':2}"}, {"[]", "{'a'}"}},
      {"{'type':['integer','null']}", {"1", "null"}, {"1.5", "'a'"}},
      {"{'type':['integer','number']}", {"1.5"}, {"null"}},
      {"{'type':'string','nullable':true}", {"'a'", "null"}, {"1"}},
      {"{'type':'string','nullable':true,'enum':['a']}", {"'a'"}, {"null"}},
  });
}

TEST(JsonSchema, Objects) {
  const char* person =
      "{'type':'object','properties':{'name':{'type':'string'},'age':{'type':'integer'}},"
      "'required':['name'],'additionalProperties':false}";
  ExpectRows({
      {person,
       {"{'name':'x'}", "{'age':1, 'name':'x'}", "{\n  'name':'x',\n  'age': 1\n}"},
       {"{}", "{'age':1}", "{'name':1}", "{'name':'x','more':1}", "{'name':'x','name':'y'}",
        "{'name':'x',}"}},
      {"{'properties':{'a':{'type':'null'}}}",
       {"1", "{'b':1,'a':null}"},
       {"{'a':1}", "{'b':1,'a':2}"}},
      {"{'type':'object','additionalProperties':{'type':'integer'}}",
       {"{}", "{'x':1,'y':2}"},
       {"{'x':'1'}"}},
      {"{'type':'object','properties':{'a':true},'additionalProperties':{'type':'integer'}}",
       {"{'a':'x','b':1}"},
       {"{'b':'x'}", "{'\\u0061':'x'}"}},
      {"{'type':'object','required':['x'],'additionalProperties':{'type':'integer'}}",
       {"{'y':1,'x':1}"},
       {"{}", "{'x':'a'}"}},
      {"{'type':'object','properties':{'a':false}}", {"{}", "{'b':1}"}, {"{'a':1}"}},
      {"{'type':'object','minProperties':1}", {"{'a':1}"}, {"{}"}},
      {"{'type':'object','maxProperties':1}", {"{}", "{'a':1}"}, {"{'a':1,'b':2}"}},
      {"{'type':'object','properties':{'a':{},'b':{},'c':{}},'additionalProperties':false,'"
       "minProperties':2}",
       {"{'a':1,'c':2}", "{'c':1,'b':2,'a':3}"},
       {"{'b':1}", "{}"}},
      {"{'type':'object','propertyNames':{'enum':['a','b']},'additionalProperties':{'type':'null'}"
       "}",
       {"{}", "{'b':null,'a':null}"},
       {"{'c':null}", "{'a':1}"}},
      {"{'type':'object','propertyNames':{'type':'string'}}", {"{'z':1}"}, {}},
      {"{'type':'object','propertyNames':{'$ref':'#/$defs/a'},'$defs':{'a':{'$ref':'#/$defs/b'},"
       "'b':{'enum':['r','g'],'type':'string','title':'Colour'}}}",
       {"{}", "{'g':1,'r':2}"},
       {"{'b':1}"}},
      {"{'type':'object','properties':{'a':{'type':'null'}},'unevaluatedProperties':false}",
       {"{'a':null}"},
       {"{'b':1}"}},
      {"{'type':['object','null'],'required':['a'],'additionalProperties':false}",
       {"null"},
       {"{}", "{'a':1}"}},
      {"{'type':'object','properties':{'é\\n':{'type':'null'}},'additionalProperties':false}",
       {"{'é\\n':null}"},
       {"{'\\u00e9\\n':null}", "{'e':null}"}},
  });
}

TEST(JsonSchema, OrderAndSpace) {
  const char* schema = "{'type':'object','properties':{'a':{'type':'null'},'b':{'type':'array'}}}";
  ExpectRows({{schema,
               {"{'b':[],'a':null}", "{ 'a': null, 'b': [\n1, 2]}"},
               {"{'a' :null}", "{'b':[1 ,2]}", " {}", "{}\n", "{'b':[\n]}", "{'b':[ ]}"}}});
  ExpectRows({{schema,
               {"{'a':null,'b':[],'c':1}", "{'b':[]}"},
               {"{'b':[],'a':null}", "{'c':1,'a':null}"}}},
             {.in_order = true});
  ExpectRows({{schema,
               {" { 'b' : [ 1 , 2 ] , 'a' : null } \n", "{'b':[ \r\t]}", "\n{ } "},
               {"{'a':nu ll}"}}},
             {.space = JsonSpace::kAny});
}

// What a list may have after '[' and ',', and before ']'.
TEST(JsonSchema, SpaceInArraysHasABound) {
  const auto compiled = [](JsonSpace space) {
    return Must(
        CompiledGrammar::Create(Must(CompileJsonSchema("{\"type\":\"array\"}", {.space = space}))));
  };
  const auto text = [](const std::string& space) {
    return absl::StrCat("[", space, "1,", space, "2", space, "]");
  };
  const auto serialized = compiled(JsonSpace::kSerialized), any = compiled(JsonSpace::kAny);
  const std::string spaces(kMostIndent, ' '), tabs(kMostIndentTabs, '\t');
  for (const std::string& space : {std::string(), std::string(" "), "\n" + spaces, "\n" + tabs})
    EXPECT_EQ(Read(serialized, text(space)), Reads::kWhole) << space;
  for (const std::string& space :
       {std::string("  "), std::string("\t"), std::string("\r\n"), std::string(" \n"),
        std::string("\n\n"), std::string("\n \t"), "\n " + spaces, "\n\t" + tabs})
    EXPECT_EQ(Read(serialized, text(space)), Reads::kNot) << space;
  const std::string most(kMostJsonSpace, '\r');
  EXPECT_EQ(Read(any, text(most)), Reads::kWhole);
  EXPECT_EQ(Read(any, text(most + " ")), Reads::kNot);
}

// One value as JSON.stringify(x), JSON.stringify(x, null, 4), JSON.stringify(x, null, "\t"),
// json.dumps(x), json.dumps(x, indent=1) and json.dumps(x, indent=0) write it.
TEST(JsonSchema, SerializersTextsAreAccepted) {
  const std::vector<const char*> texts = {
      "{'a':[1,{'b':[]},[]],'c':{}}",
      "{\n    'a': [\n        1,\n        {\n            'b': []\n        },\n        []\n    ],\n"
      "    'c': {}\n}",
      "{\n\t'a': [\n\t\t1,\n\t\t{\n\t\t\t'b': []\n\t\t},\n\t\t[]\n\t],\n\t'c': {}\n}",
      "{'a': [1, {'b': []}, []], 'c': {}}",
      "{\n 'a': [\n  1,\n  {\n   'b': []\n  },\n  []\n ],\n 'c': {}\n}",
      "{\n'a': [\n1,\n{\n'b': []\n},\n[]\n],\n'c': {}\n}"};
  const char* listed =
      "{'type':'object','required':['a','c'],'additionalProperties':false,'properties':{"
      "'a':{'type':'array','prefixItems':[{'type':'integer'},{'type':'object'}],'minItems':2},"
      "'c':{'type':'object','additionalProperties':false}}}";
  const char* exact = "{'const':{'a':[1,{'b':[]},[]],'c':{}}}";
  for (const JsonSpace space : {JsonSpace::kSerialized, JsonSpace::kAny})
    ExpectRows({{"{}", texts, {}}, {listed, texts, {}}, {exact, texts, {}}}, {.space = space});
}

TEST(JsonSchema, Arrays) {
  ExpectRows({
      {"{'type':'array','items':{'type':'integer'}}", {"[]", "[1]", "[1, 2,3]"}, {"['a']", "[1,]"}},
      {"{'items':{'type':'integer'}}", {"'x'", "[1]"}, {"['a']"}},
      {"{'type':'array','minItems':2,'maxItems':3}",
       {"[1,2]", "[1,2,3]"},
       {"[1]", "[1,2,3,4]", "[]"}},
      {"{'type':'array','maxItems':0}", {"[]"}, {"[1]"}},
      {"{'type':'array','prefixItems':[{'type':'integer'},{'type':'string'}]}",
       {"[]", "[1]", "[1,'a']", "[1,'a',null]"},
       {"['a']", "[1,2]"}},
      {"{'type':'array','prefixItems':[{'type':'integer'},{'type':'string'}],'items':false,'"
       "minItems':1}",
       {"[1]", "[1,'a']"},
       {"[]", "[1,'a',null]"}},
      {"{'type':'array','prefixItems':[{'type':'integer'}],'items':{'type':'null'},'minItems':3,'"
       "maxItems':4}",
       {"[1,null,null]", "[1,null,null,null]"},
       {"[1,null]", "[1,null,null,null,null]", "[null,null,null]"}},
      {"{'type':'array','prefixItems':[{},{},{}],'maxItems':2}", {"[1,2]"}, {"[1,2,3]"}},
      {"{'type':'array','items':[{'type':'integer'}],'additionalItems':{'type':'null'}}",
       {"[1,null]"},
       {"[1,2]", "[null]"}},
      {"{'type':'array','items':false}", {"[]"}, {"[1]"}},
      {"{'type':'array','uniqueItems':false}", {"[1,1]"}, {}},
  });
}

TEST(JsonSchema, Values) {
  ExpectRows({
      {"{'enum':['red','green',1,null,1.5]}",
       {"'red'", "'green'", "1", "null", "1.5"},
       {"'re'", "'blue'", "2", "1.0", "true", "'\\u0072ed'"}},
      // Ids that a double does not hold.
      {"{'enum':[1234567890123456789,12345678901234567890]}",
       {"1234567890123456789", "12345678901234567890"},
       {"1234567890123456800", "1234567890123456800.0", "1234567890123456788"}},
      {"{'const':2.0}", {"2", "2.0"}, {"2.5"}},
      {"{'const':{'a':[1,'x'],'b':null}}",
       {"{'a':[1,'x'],'b':null}", "{'b':null, 'a':[1, 'x']}"},
       {"{'a':[1,'x']}", "{'a':['x',1],'b':null}"}},
      {"{'const':[]}", {"[]"}, {"[1]", "[ ]"}},
      {"{'enum':[1e22,9007199254740993]}", {"1e+22", "9007199254740993"}, {"9007199254740991"}},
      {"{'enum':['a','b',1],'type':'string'}", {"'a'", "'b'"}, {"1"}},
      {"{'enum':['a','abc','abcd'],'minLength':2,'pattern':'c$'}", {"'abc'"}, {"'a'", "'abcd'"}},
      {"{'enum':[1,2,3,4.5],'minimum':2,'type':'integer'}", {"2", "3"}, {"1", "4.5"}},
      {"{'enum':[{'a':1},{'a':2},{}],'required':['a'],'properties':{'a':{'minimum':2}}}",
       {"{'a':2}"},
       {"{'a':1}", "{}"}},
      {"{'allOf':[{'enum':[1,2,'x']},{'enum':['x',2.0,3]}]}", {"2", "'x'"}, {"1", "3"}},
      {"{'const':'line\\n\\u0001\\u007f/'}",
       {"'line\\n\\u0001\x7f/'"},
       {"'line\\n\\u0001\x7f\\/'"}},
  });
}

TEST(JsonSchema, NumbersAndStrings) {
  ExpectRows({
      {"{'type':'integer','minimum':-3,'exclusiveMaximum':12}",
       {"-3", "0", "11", "9"},
       {"-4", "12", "111"}},
      {"{'type':'number','exclusiveMinimum':0.1,'maximum':2.5}",
       {"0.11", "2.5", "2.50", "1e0"},
       {"0.1", "2.51", "2.6e0"}},
      {"{'type':'integer','multipleOf':7}", {"0", "-14", "700"}, {"8", "7.0"}},
      {"{'type':'number','multipleOf':0.25,'minimum':1}", {"1.25", "2", "1.5"}, {"0.75", "1.3"}},
      {"{'multipleOf':4,'allOf':[{'multipleOf':6}],'type':'integer'}", {"12", "-24"}, {"4", "6"}},
      // -0 is a spelling that nobody writes.
      {"{'type':'integer','minimum':0}", {"0"}, {"-0", "-1"}},
      {"{'type':'integer','multipleOf':7,'maximum':0}", {"0", "-7"}, {"-0", "7"}},
      {"{'minimum':5}", {"'x'", "5"}, {"4"}},
      {"{'type':'string','minLength':1,'maxLength':3}",
       {"'a'", "'a😀\\n'", "'\\ud83d\\ude00'"},
       {"''", "'abcd'"}},
      {"{'type':'string','pattern':'^a+$'}", {"'a'", "'\\u0061a'"}, {"'ab'", "''"}},
      {"{'type':'string','pattern':'a'}", {"'bab'", "'\\na'"}, {"'b'"}},
      {"{'type':'string','pattern':'^(ab)+$','minLength':3,'maxLength':7}",
       {"'abab'", "'ababab'"},
       {"'ab'", "'abababab'"}},
      {"{'type':'string','allOf':[{'pattern':'^a'},{'pattern':'b$'}]}",
       {"'ab'", "'axb'"},
       {"'a'", "'ba'"}},
      {"{'pattern':'^a'}", {"1", "'a'"}, {"'b'"}},
      {"{'type':'string','format':'uuid','pattern':'^0'}",
       {"'01234567-89ab-cdef-0123-456789ABCDEF'"},
       {"'11234567-89ab-cdef-0123-456789abcdef'"}},
  });
}

TEST(JsonSchema, Formats) {
  ExpectRows({
      {"{'type':'string','format':'date'}",
       {"'2024-02-29'", "'2000-02-29'", "'1999-12-31'"},
       {"'2023-02-29'", "'1900-02-29'", "'2024-04-31'", "'2024-13-01'", "'2024-00-10'",
        "'24-01-01'"}},
      {"{'type':'string','format':'time'}",
       {"'00:00:00Z'", "'23:59:59.123+05:30'"},
       {"'24:00:00Z'", "'12:60:00Z'", "'12:00:00'", "'12:00:00+24:00'"}},
      {"{'type':'string','format':'date-time'}",
       {"'2024-02-29T01:02:03Z'", "'2021-01-01t00:00:00.5-08:00'"},
       {"'2024-02-29'", "'2024-02-29 01:02:03Z'", "'2023-02-29T01:02:03Z'"}},
      {"{'type':'string','format':'duration'}",
       {"'P1Y2M3DT4H5M6S'", "'PT5M'", "'P2W'"},
       {"'P'", "'PT'", "'P1DT'", "'1D'", "'P1W2D'", "'P1Y2D'"}},
      {"{'type':'string','format':'email'}",
       {"'a.b+c@example.org'"},
       {"'a'", "'a@b'", "'.a@b.c'", "'a@-b.c'"}},
      {"{'type':'string','format':'hostname'}",
       {"'localhost'", "'www.a-b.example'"},
       {"'-a'", "'a-'", "'a..b'", "''"}},
      {"{'type':'string','format':'ipv4'}",
       {"'0.0.0.0'", "'255.249.199.9'"},
       {"'256.0.0.0'", "'1.2.3'", "'01.2.3.4'"}},
      {"{'type':'string','format':'ipv6'}",
       {"'::'", "'::1'", "'1:2:3:4:5:6:7:8'", "'1::8'", "'::ffff:1.2.3.4'", "'1:2::1.2.3.4'"},
       {"':'", "'1:2:3:4:5:6:7'", "'1::2::3'", "'12345::'", "'1:2:3:4:5:6:7::8'"}},
      {"{'type':'string','format':'uri'}",
       {"'https://u:p@example.com:8080/a/b?c=d#e'", "'mailto:a@b.c'", "'http://[::1]/'"},
       {"'example.com'", "'http:// a'", "'//a/b'"}},
      {"{'type':'string','format':'byte'}", {"''", "'YQ=='"}, {"'YQ='"}},
      {"{'type':'string','format':'base64'}", {"''", "'YQ=='"}, {"'YQ='"}},
      {"{'type':'string','format':'base64url'}", {"''", "'_-=='"}, {"'+/=='", "'YQ='"}},
      {"{'type':'string','format':'uuid4'}",
       {"'01234567-89ab-4def-8123-456789ABCDEF'"},
       {"'01234567-89ab-1def-8123-456789abcdef'", "'01234567-89ab-4def-0123-456789abcdef'"}},
      {"{'type':'string','format':'uuid7'}", {"'01234567-89ab-7def-8123-456789abcdef'"}, {}},
      {"{'type':'string','format':'path'}", {"'/a b'"}, {}},
      {"{'type':'string','format':'file-path'}", {"'/a b'"}, {}},
      {"{'type':'string','format':'directory-path'}", {"'/a b'"}, {}},
      // The pattern says what a format means that only its library knows.
      {"{'type':'string','format':'e164','pattern':'^\\\\+[0-9]{7,15}$'}",
       {"'+1234567'"},
       {"'1234567'"}},
      {"{'type':'string','format':'json-pointer'}", {"''", "'/a/~0'"}, {"'a'", "'/~2'"}},
      {"{'type':'string','format':'relative-json-pointer'}",
       {"'0'", "'1/a'", "'2#'"},
       {"'01'", "'/a'"}},
      {"{'type':'string','format':'password'}", {"'x'"}, {}},
  });
}

TEST(JsonSchema, Combinations) {
  ExpectRows({
      {"{'anyOf':[{'type':'integer'},{'type':'string','maxLength':1}]}",
       {"1", "'a'"},
       {"'ab'", "1.5"}},
      {"{'type':'object','required':['a'],'anyOf':[{'properties':{'a':{'const':1}}},{'properties':{"
       "'a':{'const':2}}}]}",
       {"{'a':1}", "{'a':2}"},
       {"{'a':3}", "{}"}},
      {"{'allOf':[{'type':'object','properties':{'a':{'type':'integer'}}},{'properties':{'a':{'"
       "minimum':3}},'required':['a']}]}",
       {"{'a':3}"},
       {"{'a':2}", "{}", "{'a':'x'}"}},
      {"{'allOf':[{'properties':{'a':{}},'additionalProperties':false},{'properties':{'b':{}}}],'"
       "type':'object'}",
       {"{'a':1}", "{}"},
       {"{'b':1}"}},
      {"{'oneOf':[{'type':'integer'},{'type':'string'}]}", {"1", "'a'"}, {"null"}},
      {"{'oneOf':[{'type':'object','properties':{'t':{'const':'a'},'x':{}},'required':['t'],'"
       "additionalProperties':false},"
       "{'type':'object','properties':{'t':{'const':'b'},'y':{}},'required':['t'],'"
       "additionalProperties':false}]}",
       {"{'t':'a','x':1}", "{'y':1,'t':'b'}"},
       {"{'t':'a','y':1}", "{'t':'c'}"}},
      // Pydantic's unions: the property that tells the branches apart has a default in each.
      {"{'discriminator':{'propertyName':'t'},'oneOf':[{'$ref':'#/$defs/a'},{'$ref':'#/$defs/b'}],"
       "'$defs':{'a':{'type':'object','properties':{'t':{'const':'a','default':'a'},'x':{}}},"
       "'b':{'type':'object','properties':{'t':{'const':'b','default':'b'},'y':{}}}}}",
       {"{'t':'a','x':1}", "{'y':1,'t':'b'}", "{'t':'b'}"},
       {"{}", "{'x':1}", "{'t':'c'}"}},
      {"{'oneOf':[{'type':'number','maximum':0},{'type':'number','exclusiveMinimum':0}]}",
       {"0", "1"},
       {}},
      {"{'oneOf':[{'type':'string','pattern':'^a'},{'type':'string','pattern':'^b'}]}",
       {"'ax'", "'b'"},
       {"'c'"}},
      {"{'oneOf':[{'required':['a'],'type':'object'},{'properties':{'b':{}},'additionalProperties':"
       "false,'type':'object'}]}",
       {"{'a':1}", "{'b':1}"},
       {"1"}},
  });
}

TEST(JsonSchema, References) {
  ExpectRows({
      {"{'$ref':'#/$defs/a','$defs':{'a':{'$ref':'#/$defs/b~1c'},'b/c':{'type':'null'}}}",
       {"null"},
       {"1"}},
      {"{'type':'object','properties':{'v':{'type':'integer'},'next':{'$ref':'#'}},'"
       "additionalProperties':false}",
       {"{}", "{'v':1,'next':{'next':{'v':2}}}"},
       {"{'next':1}", "{'next':{'next':{'v':'x'}}}"}},
      {"{'anyOf':[{'type':'integer'},{'type':'array','items':{'$ref':'#'}}]}",
       {"1", "[[],[1,[2]]]"},
       {"['a']"}},
      {"{'$ref':'#/definitions/a','minimum':2,'definitions':{'a':{'type':'integer','maximum':4}}}",
       {"2", "4"},
       {"1", "5"}},
      {"{'$ref':'#here','$defs':{'x':{'$anchor':'here','type':'null'}}}", {"null"}, {"1"}},
      {"{'$id':'https://a.b/c','$ref':'https://a.b/c#/$defs/x','$defs':{'x':{'type':'null'}}}",
       {"null"},
       {"1"}},
      {"{'$ref':'#/$defs/a%20b','$defs':{'a b':{'type':'null'}}}", {"null"}, {"1"}},
      {"{'$ref':'#/prefixItems/0','prefixItems':[{'type':'null'}]}", {"null"}, {"1"}},
  });
}

TEST(JsonSchema, IgnoresOnlyWhatSaysNothing) {
  ExpectRows(
      {{"{'$schema':'x','$id':'y','$comment':'z','title':'t','description':'d','default':1,'"
        "examples':[],"
        "'deprecated':true,'readOnly':true,'writeOnly':false,'contentMediaType':'a/"
        "b','x-mine':1,'type':'null',"
        "'$defs':{'unused':{'not':{}}}}",
        {"null"},
        {"1"}}});
}

TEST(JsonSchema, ErrorsNameTheKeywordAndItsPlace) {
  const std::pair<const char*, const char*> table[] = {
      {"{'properties':{'tags':{'type':'array','uniqueItems':true}}}",
       "the JSON schema's keyword 'uniqueItems' at #/properties/tags is not supported"},
      {"{'not':{}}", "'not' at # is not supported"},
      {"{'if':{},'then':{}}", "'if' at # is not supported"},
      {"{'items':{'contains':{}}}", "'contains' at #/items is not supported"},
      {"{'patternProperties':{'a':{}}}", "'patternProperties' at # is not supported"},
      {"{'propertyNames':{'pattern':'a'}}", "'propertyNames' at # is not supported: only"},
      {"{'propertyNames':{'$ref':'#/propertyNames'}}", "'propertyNames' at # is not supported"},
      {"{'oneOf':[{'properties':{'t':{'const':1}}},{'properties':{'t':{'const':2}}}]}",
       "at #/oneOf is not supported: its schemas 0 and 1"},
      {"{'dependentRequired':{}}", "'dependentRequired' at # is not supported"},
      {"{'$dynamicRef':'#x'}", "'$dynamicRef' at # is not supported"},
      {"{'minlength':1}", "'minlength' at # is not supported"},
      {"{'allOf':[{}],'unevaluatedProperties':false}",
       "'unevaluatedProperties' at # is not supported: it stands beside 'allOf'"},
      {"{'type':'number','multipleOf':0.01}", "'multipleOf' at # is not supported: it must be"},
      {"{'format':'regex'}", "'format' at # is not supported: no format 'regex' is known here"},
      {"{'pattern':'(?=a)'}",
       "at #/pattern is not supported: the regular expression '(?=a)' has '(?='"},
      {"{'properties':{'a':{'$id':'b'}}}", "'$id' at #/properties/a is not supported"},
      {"{'oneOf':[{'type':'integer'},{'type':'null'},{'type':'number'}]}",
       "at #/oneOf is not supported: its schemas 0 and 2"},
      {"{'type':'object','minProperties':2}", "has a minProperties that is not supported"},
      {"{'$ref':'other.json'}", "at #/$ref points outside of the schema"},
      {"{'$ref':'#/$defs/a'}", "at #/$ref points at nothing"},
      {"{'$ref':'#a'}", "at #/$ref points at an anchor that is not there"},
      {"{'$ref':'#'}", "refers to itself for the same value"},
      {"{'anyOf':[{'$ref':'#'},{'type':'null'}]}", "refers to itself for the same value"},
      {"{'$defs':{'a':{'anyOf':[{'$ref':'#/$defs/b'}]},'b':{'allOf':[{'$ref':'#/$defs/"
       "a'}]}},'allOf':[{'$ref':'#/$defs/a'},{'$ref':'#/$defs/b'}]}",
       "refers to itself for the same value"},
      {"{'$ref':1}", "at #/$ref must be a text"},
      {"{'type':'strng'}", "at #/type names no type: 'strng'"},
      {"{'type':1}", "at #/type must be the name of a type"},
      {"{'maxLength':-1}", "at #/maxLength must be a whole number of at least 0"},
      {"{'minItems':1.5}", "at #/minItems must be a whole number"},
      {"{'minimum':'1'}", "at #/minimum must be a number"},
      {"{'multipleOf':0}", "at #/multipleOf must be a number above 0"},
      {"{'enum':1}", "at #/enum must be a list"},
      {"{'required':'a'}", "at #/required must be a list of names"},
      {"{'properties':[]}", "at #/properties must be an object of schemas"},
      {"{'properties':{'a':1}}", "at #/properties/a must be a schema"},
      {"{'items':1}", "at #/items must be a schema"},
      {"{'anyOf':[]}", "at #/anyOf must be a list of schemas"},
      {"{'anyOf':[1]}", "at #/anyOf/0 is used as a schema and is none"},
      {"1", "at # is used as a schema and is none"},
      {"{", "the JSON schema is not JSON in UTF-8 at byte"},
      {"false", "no value is valid by the JSON schema at #: it is false"},
      {"{'type':'integer','minimum':2,'maximum':1}",
       "no value is valid by the JSON schema at #: its minimum is above its maximum"},
      {"{'type':'integer','exclusiveMinimum':2,'exclusiveMaximum':3}", "at #: no number of its"},
      {"{'type':'integer','multipleOf':1000,'minimum':1000000000000000}",
       "at #: no multiple of its multipleOf with at most 15 digits"},
      {"{'type':'string','pattern':'^a$','minLength':2}", "at #: no text matches its pattern"},
      {"{'enum':[]}", "at #: none of the values that 'enum' or 'const' lists"},
      {"{'type':'object','properties':{'a':{'type':'array','minItems':1,'items':{'type':'object',"
       "'required':['b'],'properties':{'c':{'type':'string'},'b':{'type':'string','minLength':5,"
       "'maxLength':3}}}}},'required':['a']}",
       "the JSON schema at #/properties/a/items/properties/b: its minLength is above its "
       "maxLength"},
      {"{'type':'array','minItems':3000,'items':{'type':'array','minItems':2,'maxItems':1}}",
       "at #/items: its minItems is above its maxItems"},
      {"{'type':'object','properties':{'name':{}},'required':['nmae'],"
       "'additionalProperties':false}",
       "at #: 'required' names 'nmae', which 'properties' or 'additionalProperties' forbids"},
      {"{'type':'object','propertyNames':{'enum':['a']},'required':['b']}", "'propertyNames'"},
      {"{'type':'object','minProperties':2,'maxProperties':1}", "its minProperties is above its"},
      {"{'type':'object','required':['a','b'],'maxProperties':1}", "more properties than max"},
      {"{'allOf':[{'type':'string'},{'type':'null'}]}", "its types exclude each other"},
      {"{'type':'object','properties':{'a':{'$ref':'#'}},'required':['a']}", "no text"},
  };
  for (const auto& [schema, message] : table)
    EXPECT_THAT(SchemaError(schema), HasSubstr(message)) << schema;
}

// Of `count` levels, each of which refers to the next one twice.
std::string Doubling(const char* keyword, int count, const char* last) {
  std::string schema = "{'$ref':'#/$defs/s0','$defs':{";
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&schema, "'s", i, "':{'", keyword, "':[{'$ref':'#/$defs/s", i + 1,
                    "'},{'$ref':'#/$defs/s", i + 1, "'}]},");
  return absl::StrCat(schema, "'s", count, "':", last, "}}");
}

TEST(JsonSchema, HostileSchemasAreRefusedOrCheap) {
  const std::clock_t start = std::clock();  // of this program: others may run beside it
  EXPECT_EQ(SchemaError(Doubling("allOf", 100, "{'type':'integer'}")), "");
  EXPECT_EQ(SchemaError(Doubling("anyOf", 30, "{'type':'integer'}")), "");
  EXPECT_THAT(SchemaError(Doubling("oneOf", 30, "{'type':'integer'}")),
              HasSubstr("too many combinations"));
  std::string choices = "{'allOf':[";
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&choices, i ? "," : "", "{'anyOf':[{'minimum':", i, "},{'maximum':", i, "}]}");
  EXPECT_THAT(SchemaError(choices + "]}"), HasSubstr("too many combinations"));
  EXPECT_EQ(SchemaError("{'type':'array','minItems':1e12}"), "");
  EXPECT_EQ(SchemaError("{'type':'string','minLength':1e12,'maxLength':1e15}"), "");
  EXPECT_THAT(
      SchemaError("{'type':'string','pattern':'^(ab|cd)*$','minLength':1e12,'maxLength':1e12}"),
      HasSubstr("at #: regular expressions"));
  EXPECT_THAT(SchemaError("{'type':'string','pattern':'((a{1000}){1000}){1000}'}"),
              HasSubstr("states"));
  EXPECT_THAT(SchemaError("{'type':'string','pattern':'(a|b)*a(a|b){30}$','maxLength':1000}"),
              HasSubstr("more than 50000 states"));
  EXPECT_THAT(SchemaError(std::string(200, '[') + std::string(200, ']')),
              HasSubstr("nests deeper"));
  std::string multiples = "{'properties':{", patterns = multiples;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&multiples, i ? "," : "", "'", i, "':{'multipleOf':", 500 + i, "}");
    absl::StrAppend(&patterns, i ? "," : "", "'", i, "':{'pattern':'[ab]{9}", i,
                    "$','maxLength':999}");
  }
  EXPECT_THAT(SchemaError(multiples + "}}"), HasSubstr("states"));
  EXPECT_EQ(SchemaError(patterns + "}}"), "");
  std::string arrays = "{'type':'array','items':", nested;
  for (int i = 0; i < 100; ++i) nested += arrays;
  EXPECT_EQ(SchemaError(nested + "{}" + std::string(100, '}')), "");
  EXPECT_LT(std::clock() - start, 120 * CLOCKS_PER_SEC);  // seconds, where none of them exploded
}

TEST(JsonSchema, CopiesAndEmptyBranchesAreCounted) {
  const auto repeat = [](const char* text, int count) {
    std::string list = text;
    for (int i = 1; i < count; ++i) absl::StrAppend(&list, ",", text);
    return list;
  };
  std::string values = "0";
  for (int i = 1; i < 10000; ++i) absl::StrAppend(&values, ",", i);
  // Each branch has a list of its own until it turns out to be empty.
  EXPECT_THAT(SchemaError("{'type':'number','enum':[" + values + "],'anyOf':[" +
                          repeat("{'type':'null'}", 2000) + ",{}]}"),
              HasSubstr("too many combinations"));
  EXPECT_THAT(SchemaError("{'oneOf':[" + repeat("false", 3000) + ",{}]}"),
              HasSubstr("too many combinations"));
  EXPECT_EQ(SchemaError("{'enum':[" + values + "],'anyOf':[" + repeat("{'const':5}", 100) + "]}"),
            "");
  ExpectRows(
      {{"{'enum':[1,[2.0],{'a':1,'b':2}],'anyOf':[{'const':1.0},{'enum':[[2],{'b':2,'a':1}]},"
        "{'const':3}]}",
        {"1", "[2]", "{'a':1,'b':2}"},
        {"3", "2"}}});
}

// The classes of characters that patterns tell apart are found without asking each set of
// characters for each class.
TEST(JsonSchema, PatternsOfManyDistinctCharactersTakeNoTime) {
  std::string schema = "{'allOf':[";
  for (uint32_t first = 0x4E00; first < 0xB000; first += 9000) {
    std::string pattern;
    for (uint32_t c = first; c < first + 9000 && c < 0xB000; ++c) AppendUtf8(c, &pattern);
    absl::StrAppend(&schema, first == 0x4E00 ? "" : ",", "{'pattern':'", pattern, "'}");
  }
  const std::clock_t start = std::clock();  // of this program: others may run beside it
  EXPECT_THAT(SchemaError(schema + "]}"), HasSubstr("more than 50000 states"));
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
}

TEST(JsonSchema, LargeSchemasOfTheUsualKind) {
  std::string schema = "{'type':'object','additionalProperties':false,'properties':{";
  for (int i = 0; i < 200; ++i)
    absl::StrAppend(&schema, i ? "," : "", "'property_", i, "':{'type':'",
                    i % 3 ? "string" : "integer", "'}");
  schema += ",'word':{'enum':[";
  for (int i = 0; i < 1000; ++i)
    absl::StrAppend(&schema, i ? "," : "", "'word number ", i * 7919, "'");
  schema += "]}}}";
  ExpectRows({{schema.c_str(),
               {"{'property_199':'x','property_0':1,'word':'word number 7919'}"},
               {"{'property_200':1}", "{'word':'word number 1'}"}}});
}

}  // namespace
}  // namespace inlay
