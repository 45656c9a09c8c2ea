// Where the positions of a sequence stand in pages: kvc_group in numbers.
#ifndef KVC_RUNTIME_PAGE_LAYOUT_H
#define KVC_RUNTIME_PAGE_LAYOUT_H

#include "kvc/abi.h"

namespace kvc {

// Positions that the pages of a sequence hold at a time.
inline int64_t slotsOf(const kvc_group &group) {
  return group.positions_per_page * group.pages_per_sequence;
}

// The first position that a sequence holds which has had `reached` of them: the
// others are written over.
inline int64_t oldestOf(const kvc_group &group, int64_t reached) {
  int64_t slots = slotsOf(group);
  return reached > slots ? reached - slots : 0;
}

// The shortest length, or 0, that it can be cut back to: from there on every token
// finds its window.
inline int64_t shortestOf(const kvc_group &group, int64_t reached) {
  int64_t oldest = oldestOf(group, reached);
  return oldest > 0 ? oldest + group.window - 1 : 0;
}

// Bytes of one position, without padding.
inline int64_t bytesPerPosition(const kvc_group &group) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < group.sections_count; ++i) {
    const kvc_section &section = group.sections[i];
    bytes += section.rows * section.pieces * section.bytes;
  }
  return bytes;
}

// Pages in which the positions [first, end) stand.
inline int64_t pagesOfRange(const kvc_group &group, int64_t first, int64_t end) {
  if (first >= end)
    return 0;
  int64_t positions = group.positions_per_page;
  int64_t pages = (end - 1) / positions - first / positions + 1;
  return pages < group.pages_per_sequence ? pages : group.pages_per_sequence;
}

// Calls visit(index) for each of them.
template <typename Visit>
void forEachPage(const kvc_group &group, int64_t first, int64_t end, Visit visit) {
  int64_t count = pagesOfRange(group, first, end);
  int64_t page = first / group.positions_per_page;
  for (int64_t i = 0; i < count; ++i)
    visit((page + i) % group.pages_per_sequence);
}

// Calls visit(at, count) for the positions of [first, end), no more than all pages
// hold, that stand in the page of index `page`, `count` of them behind each other
// from place `at` of the page on: never, once, or twice where the last page is
// followed by the first one.
template <typename Visit>
void forEachPlace(const kvc_group &group, int64_t page, int64_t first, int64_t end,
                  Visit visit) {
  int64_t slots = slotsOf(group);
  int64_t from = first % slots, to = from + (end - first);
  int64_t start = page * group.positions_per_page;
  for (; start < to; start += slots) {
    int64_t behind = start + group.positions_per_page;
    int64_t low = from > start ? from : start, high = to < behind ? to : behind;
    if (low < high)
      visit(low - start, high - low);
  }
}

// Calls run(offset, bytes) for each run of bytes of a page in which `count`
// positions from place `at` on stand: all of these and nothing else.
template <typename Run>
void forEachRun(const kvc_group &group, int64_t at, int64_t count, Run run) {
  int64_t end = at + count;
  for (int64_t i = 0; i < group.sections_count; ++i) {
    const kvc_section &section = group.sections[i];
    int64_t lanes = section.lanes;
    int64_t pieceBytes = lanes * section.bytes;
    int64_t unitBytes = section.pieces * pieceBytes; // of `lanes` positions
    int64_t rowBytes = group.positions_per_page / lanes * unitBytes;
    for (int64_t row = 0; row < section.rows; ++row)
      for (int64_t place = at; place < end;) {
        int64_t lane = place % lanes, left = end - place;
        int64_t unit =
            section.offset + row * rowBytes + place / lanes * unitBytes;
        if (lane == 0 && left >= lanes) {
          run(unit, left / lanes * unitBytes);
          place += left / lanes * lanes;
          continue;
        }
        int64_t some = left < lanes - lane ? left : lanes - lane;
        for (int64_t piece = 0; piece < section.pieces; ++piece)
          run(unit + piece * pieceBytes + lane * section.bytes,
              some * section.bytes);
        place += some;
      }
  }
}

} // namespace kvc

#endif
