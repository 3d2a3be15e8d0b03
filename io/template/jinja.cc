#include "io/template/jinja.h"

#include <utility>

#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/template/ast.h"
#include "io/template/interpreter.h"
#include "io/template/parser.h"

namespace inlay::jinja {

absl::StatusOr<Template> Template::Parse(absl::string_view source) {
  return OrOutOfMemory("parsing a chat template", [&]() -> absl::StatusOr<Template> {
    INLAY_ASSIGN_OR_RETURN(ParsedTemplate parsed, ParseTemplate(source));
    return Template(std::make_unique<const ParsedTemplate>(std::move(parsed)));
  });
}

Template::Template(std::unique_ptr<const ParsedTemplate> parsed) : parsed_(std::move(parsed)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

absl::StatusOr<Text> Template::Render(const Value& inputs, const RenderOptions& options) const {
  return OrOutOfMemory("rendering a chat template",
                       [&] { return Interpreter(*parsed_, inputs, options).Run(); });
}

}  // namespace inlay::jinja
