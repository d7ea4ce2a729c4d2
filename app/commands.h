// The subcommands. Each adds itself to the program and returns what to run when it was chosen.
#pragma once

#include <functional>

#include "app/command_line.h"
#include "app/options/parser.h"
#include "app/outputs.h"

namespace pipesim {

// Exit codes (docs/reference/commands.md).
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // a check failed, or the request cannot be met
inline constexpr int kBadInput = 2;
inline constexpr int kInterrupted = 130;  // as shells report a program that SIGINT has ended

using Command = std::function<int(const CommandLine&)>;

struct Subcommand {
  const Parser* parser = nullptr;
  Command run;
};

Subcommand add_new(Parser& program);
Subcommand add_run(Parser& program);
Subcommand add_execute(Parser& program);
Subcommand add_show(Parser& program);
Subcommand add_compare(Parser& program);
Subcommand add_gallery(Parser& program);
Subcommand add_export(Parser& program);
Subcommand add_improve(Parser& program);
Subcommand add_prove(Parser& program);
Subcommand add_import(Parser& program);
Subcommand add_list(Parser& program);
Subcommand add_plot(Parser& program);
Subcommand add_doctor(Parser& program);
Subcommand add_schema(Parser& program);
Subcommand add_search(Parser& program);
Subcommand add_sweep(Parser& program);
Subcommand add_plan(Parser& program);
Subcommand add_report(Parser& program);
Subcommand add_reproduce(Parser& program);
Subcommand add_sensitivity(Parser& program);
Subcommand add_serve(Parser& program);
Subcommand add_goodput(Parser& program);
Subcommand add_validate(Parser& program);
Subcommand add_anchor(Parser& program);
Subcommand add_calibrate(Parser& program);
Subcommand add_workbench(Parser& program);

}  // namespace pipesim
