// Headers that most tests include, compiled once (tests/CMakeLists.txt).
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>
