// Renders chat templates: an interpreter for the part of Jinja2 that published models use.
//
// What a template does and prints is what Jinja2 does with the settings of Hugging Face's
// tokenizers (a sandbox that changes no input, trim_blocks, lstrip_blocks, break and continue, the
// filter tojson, the functions raise_exception and strftime_now, the tag generation). What is left
// out is refused with its line: other templates (include, import, extends, block), autoescape, and
// a few filters and functions. A template sees nothing but its inputs, and the time.
#ifndef INLAY_IO_TEMPLATE_JINJA_H_
#define INLAY_IO_TEMPLATE_JINJA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/template/render_options.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay::jinja {

struct ParsedTemplate;  // ast.h

// A parsed template; it can be rendered by several threads at a time, which may share inputs.
class Template {
 public:
  // InvalidArgument for what Jinja refuses too, Unimplemented for what is only left out here; both
  // name the line.
  static absl::StatusOr<Template> Parse(absl::string_view source);

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // The text, of which every byte tells whether the template or an input wrote it. `inputs` is a
  // dict of the variables by name. FailedPrecondition is the template's own raise_exception, with
  // its words as message; other errors name the line: InvalidArgument as above and for what is
  // nested too deep, Unimplemented, OutOfRange beyond the limits on steps and memory.
  absl::StatusOr<Text> Render(const Value& inputs, const RenderOptions& options = {}) const;

 private:
  explicit Template(std::unique_ptr<const ParsedTemplate> parsed);

  std::unique_ptr<const ParsedTemplate> parsed_;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_JINJA_H_
