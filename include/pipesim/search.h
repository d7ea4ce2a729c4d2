// The best schedule under a limit on activation memory, with a lower bound: Search::at, or
// Search::frontier for many limits. Found::program is the order that was found, pass by pass.
#pragma once

#include "sim/pipeline/program.h"
#include "sim/search/search.h"
