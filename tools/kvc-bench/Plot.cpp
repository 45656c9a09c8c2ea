#include "Plot.h"

#include "Table.h"

#include "tools/kvc-run/Common.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

constexpr double kWidth = 540, kHeight = 350; // of a panel, in pixels
constexpr double kLeft = 72, kRight = 24, kTop = 56, kBottom = 48;
constexpr double kHeader = 64;

// Distinguishable to the colour-blind, too (Okabe and Ito).
const char *const kColours[] = {"#0072b2", "#d55e00", "#009e73",
                                "#cc79a7", "#e69f00", "#56b4e9"};

// Samples at one x.
struct Point {
  double x;
  std::vector<double> samples;
};

// Its colour says how many threads, and dashes which of two things.
struct Line {
  std::string name; // of the threads
  const char *colour;
  bool dashed;
  bool dots; // draws the samples, too
  std::vector<Point> points;
};

struct Panel {
  std::string title, xTitle;
  std::string solid, dashed; // names of what such lines are; empty: all are one
  std::vector<Line> lines;
};

std::string escape(const std::string &text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '<'   ? "&lt;"
               : c == '>' ? "&gt;"
               : c == '&' ? "&amp;"
                          : std::string(1, c);
  return escaped;
}

std::string number(double value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%.1f", value);
  return digits;
}

// 1, 2 or 5 times a power of ten: some five of them make `range`.
double tickStep(double range) {
  double power = std::pow(10, std::floor(std::log10(range / 5)));
  for (double factor : {1., 2., 5.})
    if (range / (factor * power) <= 6)
      return factor * power;
  return 10 * power;
}

class Drawing {
public:
  explicit Drawing(FILE *file) : file(file) {}

  void text(double x, double y, const char *attributes,
            const std::string &what) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y,
            attributes, escape(what).c_str());
  }
  void line(double x1, double y1, double x2, double y2,
            const char *attributes) {
    fprintf(file,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1,
            y1, x2, y2, attributes);
  }

  void stroke(const std::string &path, const char *colour, bool dashed) {
    fprintf(file, "<path d=\"%s\" class=\"line\" stroke=\"%s\"%s/>\n",
            path.c_str(), colour, dashed ? " stroke-dasharray=\"5 4\"" : "");
  }

  void panel(const Panel &panel, double left, double top) {
    double width = kWidth - kLeft - kRight, height = kHeight - kTop - kBottom;
    double x0 = left + kLeft, y0 = top + kTop + height; // the origin
    double mostX = 0, mostY = 0, mostDot = 0;
    for (const Line &some : panel.lines)
      for (const Point &point : some.points) {
        mostX = std::max(mostX, point.x);
        mostY = std::max(mostY, most(point.samples));
        if (some.dots)
          mostDot = std::max(mostDot, most(point.samples));
      }
    // A limit far above everything measured would flatten that.
    mostY = std::min(mostY, 3 * mostDot);
    mostX = mostX > 0 ? mostX : 1;
    double step = tickStep(mostY), scaleY = height / (mostY * 1.06);
    auto at = [&](double x) { return x0 + x / mostX * (width - 12); };

    text(x0, top + 20, "class=\"title\"", panel.title);
    for (double y = 0; y <= mostY * 1.06; y += step) {
      char label[32];
      snprintf(label, sizeof label, "%.6g", y);
      line(x0, y0 - y * scaleY, x0 + width, y0 - y * scaleY,
           y == 0 ? "class=\"axis\"" : "class=\"grid\"");
      text(x0 - 8, y0 - y * scaleY + 4, "class=\"tick\" text-anchor=\"end\"",
           label);
    }
    double last = -1e9;
    for (const Line &some : panel.lines)
      for (const Point &point : some.points) {
        if (&some != &panel.lines.front() || at(point.x) - last < 26)
          continue;
        char label[32];
        snprintf(label, sizeof label, "%.6g", point.x);
        last = at(point.x);
        line(last, y0, last, y0 + 4, "class=\"axis\"");
        text(last, y0 + 18, "class=\"tick\" text-anchor=\"middle\"", label);
      }
    text(x0 + width / 2, y0 + 38, "class=\"name\" text-anchor=\"middle\"",
         panel.xTitle);

    double legend = x0;
    auto entry = [&](const std::string &name, const char *colour, bool dashed) {
      stroke("M" + number(legend) + " " + number(top + 38) + "h20", colour,
             dashed);
      text(legend + 26, top + 42, "class=\"name\"", name);
      legend += 6.6 * double(name.size()) + 48;
    };
    for (const Line &some : panel.lines)
      if (some.dashed == panel.lines.front().dashed)
        entry(some.name, some.colour, false);
    if (!panel.solid.empty())
      entry(panel.solid, "#777", false);
    if (!panel.dashed.empty())
      entry(panel.dashed, "#777", true);

    for (const Line &some : panel.lines) {
      std::string path;
      for (const Point &point : some.points)
        if (double y = median(point.samples); y <= mostY * 1.001)
          path += (path.empty() ? "M" : "L") + number(at(point.x)) + " " +
                  number(y0 - y * scaleY);
      if (!path.empty())
        stroke(path, some.colour, some.dashed);
      for (const Point &point : some.points)
        for (double sample : some.dots ? point.samples : std::vector<double>())
          fprintf(file,
                  "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"%s\" "
                  "fill-opacity=\"0.35\"/>\n",
                  at(point.x), y0 - sample * scaleY, some.colour);
    }
  }

private:
  FILE *file;
};

// The lines of one kind of measurement, one for each number of threads. `x` and
// `y` tell a measurement's place and make a sample of its seconds.
template <typename Wanted, typename X, typename Y>
void addLines(Panel &panel, const Results &results, bool dashed, bool roof,
              Wanted wanted, X x, Y y) {
  for (size_t i = 0; i < results.threads.size(); ++i) {
    int64_t threads = results.threads[i];
    Line line{std::to_string(threads) + (threads == 1 ? " thread" : " threads"),
              kColours[i % std::size(kColours)],
              dashed,
              !roof,
              {}};
    for (const Measurement &what : results.all) {
      if (what.threads != threads || !wanted(what))
        continue;
      Point point{double(x(what)), {}};
      for (double seconds : roof ? what.roof : what.seconds)
        point.samples.push_back(y(what, seconds));
      line.points.push_back(point);
    }
    if (!line.points.empty())
      panel.lines.push_back(line);
  }
}

std::vector<Panel> makePanels(const Results &results,
                              const BenchOptions &options) {
  auto rate = [](const Measurement &what, double seconds) {
    return double(what.batch) / seconds;
  };
  auto milliseconds = [](const Measurement &, double seconds) {
    return 1e3 * seconds;
  };
  int64_t firstBatch = options.batches.empty() ? 0 : options.batches.front();
  int64_t firstDepth = 0;
  for (const Measurement &what : results.all)
    if (what.kind == Kind::decode) {
      firstDepth = what.depth;
      break;
    }
  auto isFirst = [](const Measurement &what) {
    return what.kind == Kind::firstToken;
  };
  auto isDepth = [=](const Measurement &what) {
    return what.kind == Kind::decode && what.batch == firstBatch;
  };
  auto isBatch = [=](const Measurement &what) {
    return what.kind == Kind::decode && what.depth == firstDepth;
  };
  auto depth = [](const Measurement &what) { return what.depth; };
  auto batch = [](const Measurement &what) { return what.batch; };
  auto tokens = [](const Measurement &what) { return what.tokens; };

  Panel first{
      "Time to the first token, ms", "tokens of the prompt", "", "", {}};
  addLines(
      first, results, false, false, isFirst,
      [](const Measurement &what) { return what.prompt; }, milliseconds);
  Panel depths{"Tokens a second, batch " + std::to_string(firstBatch),
               "cached positions",
               "",
               "roof: reading the same bytes",
               {}};
  addLines(depths, results, false, false, isDepth, depth, rate);
  addLines(depths, results, true, true, isDepth, depth, rate);
  Panel batches{"Tokens a second of all sequences, depth " +
                    std::to_string(firstDepth),
                "sequences",
                "",
                "",
                {}};
  addLines(batches, results, false, false, isBatch, batch, rate);
  Panel cache{"Tokens behind a prompt of " + std::to_string(kGeneratePrompt) +
                  ", ms",
              "tokens",
              "cached",
              "whole prefix",
              {}};
  addLines(
      cache, results, false, false,
      [](const Measurement &what) { return what.kind == Kind::cached; }, tokens,
      milliseconds);
  addLines(
      cache, results, true, false,
      [](const Measurement &what) { return what.kind == Kind::uncached; },
      tokens, milliseconds);
  std::vector<Panel> panels;
  for (Panel &panel : std::vector<Panel>{first, depths, batches, cache})
    if (!panel.lines.empty())
      panels.push_back(panel);
  return panels;
}

} // namespace

void writePlot(const Results &results, const BenchOptions &options) {
  std::vector<Panel> panels = makePanels(results, options);
  FILE *file = fopen(options.plot.c_str(), "w");
  if (!file)
    die("%s: %s", options.plot.c_str(), strerror(errno));
  double width = kWidth * (panels.size() > 1 ? 2 : 1);
  double height = kHeader + kHeight * double((panels.size() + 1) / 2) + 24;
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
          "width=\"%.0f\" height=\"%.0f\" font-family=\"Helvetica, Arial, "
          "sans-serif\">\n"
          "<style>\n"
          ".title { font-size: 15px; font-weight: bold; fill: #222 }\n"
          ".name { font-size: 12px; fill: #444 }\n"
          ".tick { font-size: 11px; fill: #555 }\n"
          ".grid { stroke: #e4e4e4 }\n"
          ".axis { stroke: #777 }\n"
          ".line { fill: none; stroke-width: 2 }\n"
          "</style>\n"
          "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
          width, height, width, height);
  Drawing drawing(file);
  drawing.text(kLeft, 30, "class=\"title\" style=\"font-size: 19px\"",
               results.info.name);
  drawing.text(kLeft, 50, "class=\"name\"",
               machineName() + ", CPU level " + results.level + ", " +
                   std::to_string(options.rounds) +
                   " rounds; dots are samples, lines medians");
  for (size_t i = 0; i < panels.size(); ++i)
    drawing.panel(panels[i], kWidth * double(i % 2),
                  kHeader + kHeight * double(i / 2));
  fputs("</svg>\n", file);
  bool failed = ferror(file);
  if (fclose(file) != 0 || failed)
    die("%s: %s", options.plot.c_str(), strerror(errno));
}
