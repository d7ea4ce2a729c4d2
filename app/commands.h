// The subcommands. Each adds itself to the parser and returns what to run when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "app/command_line.h"

namespace pipesim {

// Exit codes (docs/reference/commands.md).
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // a check failed, or the request cannot be met
inline constexpr int kBadInput = 2;
inline constexpr int kInterrupted = 130;  // as shells report a program that SIGINT has ended

using Command = std::function<int(const CommandLine&)>;

struct Subcommand {
  CLI::App* parser = nullptr;
  Command run;
};

Subcommand add_new(CLI::App& app);
Subcommand add_run(CLI::App& app);
Subcommand add_show(CLI::App& app);
Subcommand add_gallery(CLI::App& app);
Subcommand add_export(CLI::App& app);
Subcommand add_import(CLI::App& app);
Subcommand add_list(CLI::App& app);
Subcommand add_plot(CLI::App& app);
Subcommand add_search(CLI::App& app);
Subcommand add_sweep(CLI::App& app);
Subcommand add_plan(CLI::App& app);
Subcommand add_report(CLI::App& app);
Subcommand add_sensitivity(CLI::App& app);
Subcommand add_validate(CLI::App& app);
Subcommand add_calibrate(CLI::App& app);

}  // namespace pipesim
