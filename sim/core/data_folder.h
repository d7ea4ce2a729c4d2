// Where the data stands that the program reads at run time.
//
// ../share/pipesim from the executable: in the build tree (CMakeLists.txt makes links there) as
// after installation.
#pragma once

#include <string>

namespace pipesim {

// The folder `name` there, whether it exists or not.
std::string data_folder(const std::string& name);

}  // namespace pipesim
