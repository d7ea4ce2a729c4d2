// Lists of numbers as Megatron-LM's arguments and their relatives write them.
#pragma once

#include <string>
#include <vector>

namespace pipesim {

// A list as Megatron-LM's arguments write it: an int N (1: every one, N: every N-th), or a Python
// expression of lists such as ([0]*3+[1]*58). `length` numbers; empty where it is neither.
std::vector<int> frequencies_of(const std::string& text, long length);

// Numbers of a list such as "61,62 63"; other words are left out.
std::vector<long> numbers_of(const std::string& text);

}  // namespace pipesim
