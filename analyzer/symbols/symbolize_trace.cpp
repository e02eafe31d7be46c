#include "symbols/symbolize_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vramtrack/trace_format.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>

#include "symbols/symbolizer.h"
#include "trace/crc32c.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

namespace vramtrack {
namespace {

bool still_written(const RecordingInfo& info) {
  if (info.finished || info.pid == 0) return false;
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0 || info.host != host) return false;
  return kill(static_cast<pid_t>(info.pid), 0) == 0 || errno == EPERM;
}

std::vector<uint8_t> frame_bytes(const std::string& body) {
  if (body.size() > kMaxFrameBytes) throw InputError("the symbols do not fit into one frame");
  std::vector<uint8_t> packed(sizeof(FrameHeader) + ZSTD_compressBound(body.size()));
  const size_t stored =
      ZSTD_compress(packed.data() + sizeof(FrameHeader), packed.size() - sizeof(FrameHeader),
                    body.data(), body.size(), 3);
  if (ZSTD_isError(stored) != 0) throw InputError("the symbols cannot be compressed");
  FrameHeader header{};
  header.magic = kFrameMagic;
  header.type = static_cast<uint16_t>(FrameType::symbols);
  header.codec = static_cast<uint16_t>(Codec::zstd);
  header.stored_bytes = static_cast<uint32_t>(stored);
  header.raw_bytes = static_cast<uint32_t>(body.size());
  header.checksum = crc32c({packed.data() + sizeof header, stored});
  std::memcpy(packed.data(), &header, sizeof header);
  packed.resize((sizeof header + stored + 7) / 8 * 8);
  return packed;
}

void append(const std::filesystem::path& path, const std::vector<uint8_t>& frame) {
  const auto fail = [&path](const char* what) {
    throw InputError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
  };
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) fail("cannot add symbols");
  struct stat status {};
  const bool known = fstat(file, &status) == 0;
  const off_t end = (status.st_size + 7) / 8 * 8;
  const bool written =
      known && pwrite(file, frame.data(), frame.size(), end) == static_cast<ssize_t>(frame.size());
  if (!written && known) {
    const int error = errno;
    // Half a frame is worse than none.
    if (ftruncate(file, status.st_size) != 0) errno = error;
    errno = error;
  }
  ::close(file);
  if (!written) fail("cannot add symbols");
}

}  // namespace

TraceSymbols symbolize_trace(const std::filesystem::path& path) {
  const std::unique_ptr<TraceFile> trace = open_trace(path);
  if (still_written(trace->info())) {
    throw InputError(fmt::format("{} is still being written by process {}; try again when it ended",
                                 path.string(), trace->info().pid));
  }
  const RawDefinitions& definitions = trace->raw_definitions();
  SymbolStore store;
  if (!definitions.symbols.empty()) store = SymbolStore::parse(definitions.symbols);
  const size_t before = store.size();
  const SymbolizeResult found = symbolize(definitions);
  store.merge(found.symbols);

  TraceSymbols result;
  result.addresses = found.addresses;
  result.named = store.size();
  result.added = store.size() - before;
  result.missing_modules = found.missing_modules;
  if (result.added != 0) append(path, frame_bytes(store.to_json()));
  return result;
}

}  // namespace vramtrack
