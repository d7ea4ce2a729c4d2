// Where the files stand that the program reads and loads at run time.
//
// They stand around a prefix: the nearest folder above the shared library, or above the executable
// where pipesim is linked into it, that has share/pipesim. It is found at run time, in the build
// tree (CMakeLists.txt makes links there) as after installation, so that a prefix can be moved.
#pragma once

#include <string>

namespace pipesim {

// The folder `name` of the data, which need not exist. It is below the environment's PIPESIM_DATA
// where that is set, else below share/pipesim of the prefix.
std::string data_folder(const std::string& name);

// The module `name` in lib/pipesim of the prefix, whether it exists or not.
std::string module_file(const std::string& name);

}  // namespace pipesim
