// Writes a matrix as a NumPy file, rows as they come.
#ifndef KVC_RUN_NPY_H
#define KVC_RUN_NPY_H

#include <cstdio>
#include <kvc/kvc.h>
#include <string>

class NpyWriter {
public:
  // Creates the file of a matrix [rows, columns] of KVC_TYPE_F32 or
  // KVC_TYPE_F64; dies when it can't be written, as do the calls below.
  NpyWriter(const std::string &path, kvc_type type, int64_t rows,
            int64_t columns);
  void write(const void *elements, int64_t rows);
  void close();

private:
  std::string path;
  FILE *file;
  size_t rowBytes;
};

#endif
