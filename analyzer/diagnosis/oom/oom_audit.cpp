#include "diagnosis/oom/oom_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace vramtrack {
namespace {

using Number = std::optional<long double>;

// The numbers as points, so that a decision can be tried at the corners of their intervals.
struct Point {
  Number ask, total, free, allocated, reserved, limit, others;

  [[nodiscard]] Number held() const {
    if (!allocated || !reserved) return std::nullopt;
    return std::max(*reserved - *allocated, 0.0L);
  }
  [[nodiscard]] Number outside() const {
    if (!total || !free || !reserved) return std::nullopt;
    return *total - *free - *reserved - others.value_or(0);
  }
};

struct Decision {
  OomVerdict verdict = OomVerdict::undetermined;
  Confidence confidence = Confidence::low;
  std::string reason;
  std::vector<OomVerdict> close;
};

// Would the pool's own holes, put together with what is free, have held the request?
bool defragmenting_helps(const Point& p, long double room) {
  const long double held = *p.held();
  const long double slack = room + held - *p.ask;
  if (held <= 0 || slack < 0) return false;
  if (held >= *p.ask) return true;
  return held >= threshold::kOrderOfRequest * *p.ask &&
         slack >= threshold::kPackingMargin * (*p.allocated + *p.ask);
}

Decision decide_limit(const Point& p) {
  if (p.ask && p.held() && defragmenting_helps(p, std::max(*p.limit - *p.reserved, 0.0L))) {
    return {OomVerdict::fragmentation,
            Confidence::medium,
            fmt::format("the pool may hold {} and holds {}, of which {} are unused: enough for the "
                        "request of {}, but not in one piece",
                        bytes_text(*p.limit), bytes_text(*p.reserved), bytes_text(*p.held()),
                        bytes_text(*p.ask)),
            {OomVerdict::limit}};
  }
  return {
      OomVerdict::limit,
      Confidence::high,
      fmt::format("the pool may hold {} and holds {} already{}: the limit refused, not the card",
                  bytes_text(*p.limit), bytes_text(*p.reserved),
                  p.ask ? fmt::format(", {} more were asked for", bytes_text(*p.ask)) : ""),
      {}};
}

Decision decide_room(const Point& p) {
  const std::string reason = fmt::format(
      "{} are free and only {} were asked for: something other than the card's memory "
      "refused",
      bytes_text(*p.free), bytes_text(*p.ask));
  if (*p.free >= threshold::kWellAbove * *p.ask)
    return {OomVerdict::limit, Confidence::high, reason, {}};
  if (*p.free >= threshold::kSomewhatAbove * *p.ask) {
    return {OomVerdict::limit, Confidence::medium, reason, {}};
  }
  return {
      OomVerdict::undetermined,
      Confidence::low,
      fmt::format("{} are free and {} were asked for, so it should have fitted: another process "
                  "may have freed memory in between, or the driver keeps a little for itself",
                  bytes_text(*p.free), bytes_text(*p.ask)),
      {OomVerdict::limit, OomVerdict::other_process}};
}

// The pool's size is known, not what of it is in use: libraries without a cache, drivers' pools.
Decision decide_without_pool(const Point& p) {
  if (p.allocated && p.total && p.ask) {
    const long double gap = *p.total - p.free.value_or(0) - *p.allocated;
    if (gap <= std::max(threshold::kUsualOutside, 0.05L * *p.total)) {
      return {OomVerdict::capacity,
              Confidence::medium,
              fmt::format("{} of {} are live; {} more do not fit", bytes_text(*p.allocated),
                          bytes_text(*p.total), bytes_text(*p.ask)),
              {}};
    }
    return {
        OomVerdict::undetermined,
        Confidence::low,
        fmt::format("{} of {} are live and {} are free; what became of the other {} (held by the "
                    "pool, outside it, or another process) the numbers do not say",
                    bytes_text(*p.allocated), bytes_text(*p.total), bytes_text(p.free.value_or(0)),
                    bytes_text(gap)),
        {OomVerdict::fragmentation, OomVerdict::outside}};
  }
  if (p.ask && p.free) {
    return {OomVerdict::undetermined,
            Confidence::low,
            fmt::format("{} were asked for and {} are free; who holds the rest is not said",
                        bytes_text(*p.ask), bytes_text(*p.free)),
            {}};
  }
  if (p.ask) {
    return {OomVerdict::undetermined,
            Confidence::low,
            fmt::format("{} were refused; what fills the device the message does not say",
                        bytes_text(*p.ask)),
            {}};
  }
  return {OomVerdict::undetermined, Confidence::low, "the message carries too few numbers", {}};
}

struct Suspect {
  OomVerdict verdict;
  long double bytes = 0;  // what would come back
  Confidence confidence;
  std::string reason;
};

std::vector<Suspect> find_suspects(const Point& p, long double free) {
  std::vector<Suspect> suspects;
  const long double held = *p.held();
  const long double shortfall = *p.ask - free;
  if (defragmenting_helps(p, free)) {
    const bool plain = free + held - *p.ask >= threshold::kPackingMargin * (*p.allocated + *p.ask);
    suspects.push_back(
        {OomVerdict::fragmentation, held,
         held >= *p.ask && plain ? Confidence::high : Confidence::medium,
         fmt::format(
             "the pool holds {} that nothing uses and {} are free, {} together; {} were asked "
             "for, and no single piece was large enough",
             bytes_text(held), bytes_text(free), bytes_text(held + free), bytes_text(*p.ask))});
  }
  if (!p.total) return suspects;
  const long double others = p.others.value_or(0);
  if (others >= shortfall && others >= threshold::kShareThatMatters * *p.total) {
    suspects.push_back(
        {OomVerdict::other_process, others,
         others >= threshold::kShareThatDecides * *p.total ? Confidence::high : Confidence::medium,
         fmt::format("other processes hold {} of {}; {} more would have been enough",
                     bytes_text(others), bytes_text(*p.total), bytes_text(shortfall))});
  }
  if (const Number outside = p.free ? p.outside() : Number{}) {
    const long double excess = *outside - threshold::kUsualOutside;
    if (excess >= shortfall && *outside >= threshold::kShareThatMatters * *p.total) {
      suspects.push_back(
          {OomVerdict::outside, excess, excess >= 2 * held ? Confidence::high : Confidence::medium,
           fmt::format("{} of {} are in use outside this pool (another process, another library, a "
                       "context); {} more would have been enough",
                       bytes_text(*outside), bytes_text(*p.total), bytes_text(shortfall))});
    }
  }
  std::sort(suspects.begin(), suspects.end(),
            [](const Suspect& a, const Suspect& b) { return a.bytes > b.bytes; });
  return suspects;
}

Decision decide_capacity(const Point& p, long double free) {
  const long double held = *p.held();
  Decision decision;
  decision.verdict = OomVerdict::capacity;
  if (free + held < *p.ask) {
    decision.confidence = Confidence::high;
    decision.reason = fmt::format(
        "{} are live in the pool; {} free and {} held unused are {} together, {} less than the {} "
        "asked for",
        bytes_text(*p.allocated), bytes_text(free), bytes_text(held), bytes_text(free + held),
        bytes_text(*p.ask - free - held), bytes_text(*p.ask));
  } else {
    decision.confidence = Confidence::medium;
    decision.close = {OomVerdict::fragmentation};
    decision.reason = fmt::format(
        "{} are live in the pool; the {} asked for would have fitted only if {} free and {} held "
        "unused had been one piece, with {} to spare",
        bytes_text(*p.allocated), bytes_text(*p.ask), bytes_text(free), bytes_text(held),
        bytes_text(free + held - *p.ask));
  }
  // Others who hold enough, but a small share of the card, make it two causes.
  if (p.total && p.others.value_or(0) >= *p.ask - free) {
    decision.confidence = Confidence::low;
    decision.close.push_back(OomVerdict::other_process);
  }
  const Number outside = p.free ? p.outside() : Number{};
  if (outside && *outside - threshold::kUsualOutside >= *p.ask - free) {
    decision.confidence = std::min(decision.confidence, Confidence::medium);
    decision.close.push_back(OomVerdict::outside);
  }
  return decision;
}

Decision decide(const Point& p) {
  if (p.allocated && p.total && *p.allocated > *p.total) {
    return {OomVerdict::capacity,
            Confidence::high,
            fmt::format("{} are allocated on a card of {}: the driver already pages to host memory",
                        bytes_text(*p.allocated), bytes_text(*p.total)),
            {}};
  }
  if (p.ask && p.total && *p.ask > *p.total) {
    return {OomVerdict::capacity,
            Confidence::high,
            fmt::format("a single request of {} exceeds the whole card of {}: it can never fit",
                        bytes_text(*p.ask), bytes_text(*p.total)),
            {}};
  }
  if (p.limit && (!p.total || *p.limit < *p.total)) {
    const bool refused =
        p.reserved && (p.ask ? *p.reserved + *p.ask > *p.limit : *p.reserved >= 0.95L * *p.limit);
    if (refused) return decide_limit(p);
    if (p.ask && *p.ask > *p.limit)
      return decide_limit({p.ask, p.total, p.free, 0, 0, p.limit, p.others});
  }
  if (p.ask && p.free && *p.free >= *p.ask) return decide_room(p);
  if (!p.ask || !p.held()) return decide_without_pool(p);

  const long double free = p.free.value_or(0);
  const auto suspects = find_suspects(p, free);
  if (suspects.empty()) return decide_capacity(p, free);
  Decision decision{suspects[0].verdict, suspects[0].confidence, suspects[0].reason, {}};
  for (size_t i = 1; i < suspects.size(); ++i) {
    decision.close.push_back(suspects[i].verdict);
    if (suspects[i].bytes >= suspects[0].bytes / 2) {
      decision.confidence = std::min(decision.confidence, Confidence::medium);
    }
  }
  return decision;
}

Number middle(const std::optional<PrintedSize>& size) {
  if (!size) return std::nullopt;
  return size->bytes;
}

Point point_of(const OomNumbers& n) {
  return {middle(n.ask),      middle(n.total), middle(n.free),           middle(n.allocated),
          middle(n.reserved), middle(n.limit), middle(n.other_processes)};
}

void add_verdict(OomVerdict verdict, OomAudit& result) {
  auto& list = result.also_possible;
  if (verdict == result.verdict || std::find(list.begin(), list.end(), verdict) != list.end())
    return;
  list.push_back(verdict);
}

// Tries the decision at the ends of every interval, one number at a time and all against each
// other.
void try_rounding(const OomNumbers& numbers, OomAudit& result) {
  struct Field {
    std::optional<PrintedSize> OomNumbers::*size;
    Number Point::*point;
  };
  const std::array fields = {Field{&OomNumbers::ask, &Point::ask},
                             Field{&OomNumbers::total, &Point::total},
                             Field{&OomNumbers::free, &Point::free},
                             Field{&OomNumbers::allocated, &Point::allocated},
                             Field{&OomNumbers::reserved, &Point::reserved},
                             Field{&OomNumbers::limit, &Point::limit},
                             Field{&OomNumbers::other_processes, &Point::others}};
  for (uint32_t corner = 0; corner < (1U << fields.size()); ++corner) {
    Point p = point_of(numbers);
    bool moved = false;
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto& size = numbers.*(fields[i].size);
      if (!size || size->half_step == 0) continue;
      const bool up = (corner >> i & 1U) != 0;
      p.*(fields[i].point) = up ? size->high() : size->low();
      moved = true;
    }
    if (!moved) return;
    const OomVerdict verdict = decide(p).verdict;
    if (verdict == result.verdict) continue;
    result.on_edge = true;
    add_verdict(verdict, result);
  }
}

// Without a figure for free memory it lies between nothing and what the pool leaves of the card.
void decide_unknown_free(const OomNumbers& numbers, const Decision& at_zero, OomAudit& result) {
  if (!numbers.total || !numbers.reserved || !numbers.ask) return;
  Point p = point_of(numbers);
  p.free = std::max(*p.total - *p.reserved - p.others.value_or(0), 0.0L);
  const Decision at_most = decide(p);
  if (at_most.verdict == at_zero.verdict) return;
  result.verdict = OomVerdict::undetermined;
  result.confidence = Confidence::low;
  result.reason = fmt::format(
      "how much is free is not said: with nothing free it would be {}, with all "
      "that the pool leaves ({}) {}",
      verdict_name(at_zero.verdict), bytes_text(*p.free), verdict_name(at_most.verdict));
  add_verdict(at_zero.verdict, result);
  add_verdict(at_most.verdict, result);
}

void derive(const OomNumbers& n, OomAudit& result) {
  if (n.reserved && n.allocated) result.held = *n.reserved - *n.allocated;
  if (n.ask && n.free) result.shortfall = *n.ask - *n.free;
  if (n.total && n.free && n.reserved) {
    result.outside = *n.total - *n.free - *n.reserved;
    if (n.other_processes) result.outside = *result.outside - *n.other_processes;
  }
  if (result.shortfall && result.held) result.missing = *result.shortfall - *result.held;
}

void remark(const OomNumbers& n, OomAudit& result) {
  if (result.outside && result.outside->high() < 0) {
    result.remarks.push_back(fmt::format(
        "free and reserved together exceed the card by {}: the driver pages to the host, or the "
        "counters were read at different moments",
        bytes_text(-result.outside->bytes)));
    if (result.verdict != OomVerdict::capacity) result.confidence = Confidence::low;
  }
  if (n.other_processes && n.other_processes->bytes > 0 &&
      result.verdict != OomVerdict::other_process) {
    result.remarks.push_back(
        fmt::format("other processes hold {}", bytes_text(n.other_processes->bytes)));
  }
  if (n.own_process && n.reserved) {
    const PrintedSize beside = *n.own_process - *n.reserved;
    if (beside.bytes > beside.half_step) {
      result.remarks.push_back(fmt::format(
          "{} of this process lie outside its pool: context, loaded code, other libraries",
          bytes_text(beside.bytes)));
    }
  }
}

// A counter that ran below zero says nothing that could be added up.
bool take_out_underflows(OomNumbers& numbers, OomAudit& result) {
  bool found = false;
  for (auto* size : {&numbers.ask, &numbers.total, &numbers.free, &numbers.allocated,
                     &numbers.reserved, &numbers.own_process, &numbers.other_processes}) {
    if (!*size || !(*size)->underflowed()) continue;
    result.remarks.push_back(fmt::format(
        "a figure near 2^64 is a counter that ran below zero (it means {}); it is left out",
        bytes_text((*size)->as_signed())));
    const bool decides = size != &numbers.own_process && size != &numbers.other_processes;
    size->reset();
    found = found || decides;
  }
  if (numbers.limit && numbers.limit->underflowed()) numbers.limit.reset();  // "no limit"
  return found;
}

}  // namespace

OomAudit audit_oom(const OomNumbers& given) {
  OomAudit result;
  OomNumbers numbers = given;
  const bool corrupt_ask = numbers.ask && numbers.ask->underflowed();
  const bool underflow = take_out_underflows(numbers, result);
  if (corrupt_ask) {
    result.verdict = OomVerdict::healthy;
    result.confidence = Confidence::high;
    result.reason = fmt::format(
        "the size asked for is a negative number read as unsigned ({}): the program "
        "computed it wrongly, memory is not the problem",
        bytes_text(given.ask->as_signed()));
    derive(numbers, result);
    return result;
  }
  const Decision decision = decide(point_of(numbers));
  result.verdict = decision.verdict;
  result.confidence = decision.confidence;
  result.reason = decision.reason;
  if (!numbers.free) decide_unknown_free(numbers, decision, result);
  for (const OomVerdict verdict : decision.close) add_verdict(verdict, result);
  if (numbers.free) try_rounding(numbers, result);
  if (result.on_edge) {
    result.confidence = Confidence::low;
    result.remarks.emplace_back(
        "the figures are rounded, and the rounding decides: it is on the edge");
  }
  if (underflow) result.confidence = Confidence::low;
  derive(numbers, result);
  remark(numbers, result);
  return result;
}

}  // namespace vramtrack
