// Reads JSON lines {"minor", "first_line", "table" (hex), "size"} and prints, for each, the line of
// every instruction as JSON.
#include <iostream>
#include <nlohmann/json.hpp>

#include "symbols/python_lines.h"

int main() {
  std::string text;
  while (std::getline(std::cin, text)) {
    const nlohmann::json code = nlohmann::json::parse(text);
    const auto hex = code.at("table").get<std::string>();
    std::string table;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      table += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    nlohmann::json lines = nlohmann::json::array();
    for (uint32_t offset = 0; offset < code.at("size").get<uint32_t>(); offset += 2)
      lines.push_back(vramtrack::python_line(code.at("minor").get<uint32_t>(), table,
                                             code.at("first_line").get<uint32_t>(), offset));
    std::cout << lines.dump() << "\n";
  }
}
