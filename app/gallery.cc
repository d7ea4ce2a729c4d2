// pipesim gallery: a page with a drawing of every schedule.
#include "sim/report/svg/gallery.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "sim/report/svg/svg.h"

namespace pipesim {
namespace {

int write_gallery(const std::string& folder, const CommandLine& line) {
  namespace fs = std::filesystem;
  const Location where = line.where(folder);
  const fs::path drawings = fs::path(folder) / "gallery";
  make_folder(drawings.string(), where);
  std::vector<GalleryEntry> gallery;
  for (const Schedule* schedule : schedules()) gallery.push_back(gallery_entry(*schedule));
  std::vector<Output> outputs{{(fs::path(folder) / "gallery.md").string(), where,
                               [&](std::ostream& out) { out << gallery_page(gallery); }}};
  for (const GalleryEntry& entry : gallery) {
    if (!entry.answer) continue;
    outputs.push_back({(drawings / (title_of(*entry.schedule) + ".svg")).string(), where,
                       [&entry](std::ostream& out) {
                         write_svg(out, entry.answer->made, entry.answer->result,
                                   {.name = title_of(*entry.schedule), .bytes = false});
                       }});
  }
  write_outputs(outputs);
  return kDone;
}

}  // namespace

Subcommand add_gallery(Parser& program) {
  auto folder = std::make_shared<std::string>();
  Parser& parser = program.add_command("gallery", "Draw every schedule, on one page",
                                       "  pipesim gallery -o out/gallery\n"
                                       "  pipesim gallery -o docs/reference");
  add_output(parser, *folder, "Folder for gallery.md and gallery/NAME.svg").required();
  return {&parser, [folder](const CommandLine& line) { return write_gallery(*folder, line); }};
}

}  // namespace pipesim
