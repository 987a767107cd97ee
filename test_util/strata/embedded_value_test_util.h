// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "file/file_util.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// Writes an SST file that embeds a value whose checksum is wrong. A scan that
// reads no more values than it needs goes on behind it. The other keys have the
// value "small": an ingestion reads the first and the last value of a file.
// options: those of the column family, with a BlockBasedTableFactory.
// path: where the file is written.
// key: that of the damaged value, between first and last.
inline void WriteDamagedEmbeddedValue(Options options, const std::string& path,
                                      const std::string& first,
                                      const std::string& key,
                                      const std::string& last) {
  BlockBasedTableOptions table_options;
  table_options.format_version = 7;  // the first one with embedded values
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  SstFileWriter writer(EnvOptions(), options);
  const std::string value(4096, 'e');
  ASSERT_OK(
      writer.OpenWithEmbeddedBlobs(path, SstFileWriterEmbeddedBlobOptions()));
  ASSERT_OK(writer.Put(first, "small"));
  ASSERT_OK(writer.Put(key, value));
  ASSERT_OK(writer.Put(last, "small"));
  ASSERT_OK(writer.Finish());
  std::string contents;
  ASSERT_OK(ReadFileToString(options.env, path, &contents));
  const size_t start = contents.find(value);
  ASSERT_NE(start, std::string::npos);
  contents[start + value.size() / 2] = 'd';
  ASSERT_OK(WriteStringToFile(options.env, contents, path));
}

}  // namespace ROCKSDB_NAMESPACE
