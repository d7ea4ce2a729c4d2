// --memory-limit of commands that look for orders.
#pragma once

#include <string>
#include <variant>

#include "app/options/parser.h"
#include "sim/case/make_case.h"

namespace pipesim {

// Bytes are what a GPU may hold in all, like those of `pipesim plan`.
Option add_memory_limit(Parser& parser, std::string& limit, const std::string& otherwise);

// The limit on activations of a device: a multiple of p times one microbatch's, or bytes. Bytes of
// a GPU lose the most that a device of the case holds beside activations, which a model says; given
// costs know activations alone. InputError at `where` for another text or a case that knows no
// bytes; InfeasibleError where nothing is left.
std::variant<double, Bytes> activation_limit(const std::string& text, const Case& made,
                                             const Location& where);

}  // namespace pipesim
