#include "sim/report/json/choice.h"

#include <nlohmann/json.hpp>

namespace pipesim {

void add_choice(nlohmann::ordered_json& json, const ChoiceColumns& choice) {
  using Json = nlohmann::ordered_json;
  for (size_t i = 0; i < choice.size(); ++i) {
    const std::string name(kChoiceColumns[i]);
    const Json number =
        name == "memory_limit" ? Json::parse(choice[i], nullptr, false) : Json(nullptr);
    json[name] = choice[i].empty() ? Json(nullptr) : number.is_number() ? number : Json(choice[i]);
  }
}

}  // namespace pipesim
