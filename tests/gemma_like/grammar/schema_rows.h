// What tests of JSON schemas share: schemas with texts that are valid by them and texts that are
// not.
#ifndef INLAY_TESTS_GEMMA_LIKE_GRAMMAR_SCHEMA_ROWS_H_
#define INLAY_TESTS_GEMMA_LIKE_GRAMMAR_SCHEMA_ROWS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gemma_like/grammar/json_schema.h"
#include "tests/gemma_like/grammar/grammar_text.h"

namespace inlay {

// JSON may be written with single quotes here.
inline std::string Quoted(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"'", "\""}});
}

inline std::string SchemaError(const std::string& schema) {
  const auto compiled = CompileJsonSchema(Quoted(schema));
  return compiled.ok() ? "" : std::string(compiled.status().message());
}

struct SchemaRow {
  const char* schema;
  std::vector<const char*> accepted, refused;
};

inline void ExpectRows(const std::vector<SchemaRow>& rows, const JsonSchemaOptions& options = {}) {
  for (const SchemaRow& row : rows) {
    const auto grammar = CompileJsonSchema(Quoted(row.schema), options);
    ASSERT_TRUE(grammar.ok()) << row.schema << " " << grammar.status();
    const auto compiled = Must(CompiledGrammar::Create(*grammar));
    for (const char* text : row.accepted)
      EXPECT_EQ(Read(compiled, Quoted(text)), Reads::kWhole) << row.schema << " and " << text;
    for (const char* text : row.refused)
      EXPECT_NE(Read(compiled, Quoted(text)), Reads::kWhole) << row.schema << " and " << text;
  }
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_GRAMMAR_SCHEMA_ROWS_H_
