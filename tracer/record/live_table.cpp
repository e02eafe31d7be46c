#include "record/live_table.h"

#include <new>

#include "record/pages.h"

namespace vramtrack {

uint64_t key_of(Carried kind, const Event& event) {
  switch (kind) {
    case Carried::pool:
      return event.object;
    case Carried::phase:  // the depth, put there by whoever follows the phases
      return uint64_t{event.thread} << 16 | event.extra;
    case Carried::step:
      return 0;
    case Carried::first_sample:
    case Carried::last_sample:
    case Carried::process_sample:
      return static_cast<uint16_t>(event.device);
    default:
      return event.address;
  }
}

uint32_t* LiveTable::bucket(Carried kind, uint64_t key) {
  if (buckets_ == nullptr) return nullptr;
  uint64_t h = (key ^ (static_cast<uint64_t>(kind) << 58)) * 0x9e3779b97f4a7c15ULL;
  h ^= h >> 29;
  return &buckets_[(h * 0xbf58476d1ce4e5b9ULL) >> 46];
}

LiveEntry& LiveTable::at(uint32_t index) {
  return segments_[index / kPerSegment][index % kPerSegment];
}

LiveEntry* LiveTable::find(Carried kind, uint64_t key) {
  const uint32_t* head = bucket(kind, key);
  if (head == nullptr) return nullptr;
  for (uint32_t i = *head; i != 0; i = at(i - 1).next) {
    LiveEntry& entry = at(i - 1);
    if (entry.kind == kind && key_of(kind, entry.made.event) == key) return &entry;
  }
  return nullptr;
}

uint32_t LiveTable::take_free() {
  if (free_ != 0) {
    const uint32_t index = free_ - 1;
    free_ = at(index).next;
    return index + 1;
  }
  const uint32_t segment = limit_ / kPerSegment;
  if (segment == kMostSegments) return 0;
  if (segments_[segment] == nullptr)
    segments_[segment] = static_cast<LiveEntry*>(map_pages(sizeof(LiveEntry) * kPerSegment));
  if (segments_[segment] == nullptr) return 0;
  return ++limit_;
}

LiveEntry* LiveTable::insert(Carried kind, const CarriedEvent& made) {
  if (buckets_ == nullptr)
    buckets_ = static_cast<uint32_t*>(map_pages(sizeof(uint32_t) * kBuckets));
  uint32_t* head = bucket(kind, key_of(kind, made.event));
  const uint32_t place = head == nullptr ? 0 : take_free();
  if (place == 0) return nullptr;
  LiveEntry* entry = new (&at(place - 1)) LiveEntry{};
  entry->made = made;
  entry->kind = kind;
  entry->index = place - 1;
  entry->next = *head;
  *head = place;
  ++size_;
  return entry;
}

void LiveTable::erase(const LiveEntry& entry) {
  uint32_t* link = bucket(entry.kind, key_of(entry.kind, entry.made.event));
  if (link == nullptr) return;
  while (*link != 0 && &at(*link - 1) != &entry) link = &at(*link - 1).next;
  const uint32_t place = *link;
  if (place == 0) return;
  LiveEntry& gone = at(place - 1);
  *link = gone.next;
  gone.kind = Carried::none;
  gone.next = free_;
  free_ = place;
  --size_;
}

void LiveTable::clear() {
  for (LiveEntry*& segment : segments_) {
    if (segment != nullptr) unmap_pages(segment, sizeof(LiveEntry) * kPerSegment);
    segment = nullptr;
  }
  if (buckets_ != nullptr) unmap_pages(buckets_, sizeof(uint32_t) * kBuckets);
  buckets_ = nullptr;
  limit_ = size_ = free_ = 0;
}

}  // namespace vramtrack
