#include "validate/calibration/harness/facts.h"

#include <ctime>
#include <cublasLt.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace pipesim::calibration {
namespace {

std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

std::string library_version(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string attention_fact(const AttentionLibrary& attention) {
  return attention.why_not_fused().empty() ? std::string("cuDNN's fused kernel")
                                           : std::string(kUnfusedAttention);
}

Parameters facts_of(const Card& card, const AttentionLibrary& attention) {
  int runtime = 0;
  int driver = 0;
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  std::string driver_version = card.driver_version();
  if (driver_version.empty()) driver_version = "unknown, of CUDA " + cuda_version(driver);
  Parameters facts{{"device", card.facts().name},
                   {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
                   {"driver", driver_version},
                   {"cuda", cuda_version(runtime)},
                   {"cublas", library_version(cublasLtGetVersion())}};
  if (const std::string version = attention.version(); !version.empty()) {
    facts.emplace_back("cudnn", version);
  }
  return facts;
}

}  // namespace pipesim::calibration
