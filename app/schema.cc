// pipesim schema: JSON Schemas of the files that people write, for editors and checks.
#include "sim/schema/schema.h"

#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"

namespace pipesim {
namespace {

struct SchemaOptions {
  std::string name = "scenario";
  std::string output = "-";
};

int write_schema(const SchemaOptions& options, const CommandLine& line) {
  const std::string schema = schema_of(options.name, line.where(options.name));
  write_outputs({{options.output, line.of_option(options.output),
                  [&schema](std::ostream& out) { out << schema; }}});
  return kDone;
}

}  // namespace

Subcommand add_schema(Parser& program) {
  auto options = std::make_shared<SchemaOptions>();
  Parser& parser = program.add_command(
      "schema", "Write the JSON Schema of scenarios and other files, for editors",
      "  pipesim schema scenario -o scenario.schema.json\n"
      "  pipesim schema clusters");
  parser
      .add_option("name", options->name,
                  "scenario (default), sweep, description, models, gpus or clusters; a file names "
                  "it in a comment: # yaml-language-server: $schema=scenario.schema.json")
      .one_of(schema_names());
  add_output(parser, options->output);
  return {&parser, [options](const CommandLine& line) { return write_schema(*options, line); }};
}

}  // namespace pipesim
