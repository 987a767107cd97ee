//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/repair_env.h"

#include "env/composite_env_wrapper.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

class RepairFileSystem : public FileSystemWrapper {
 public:
  RepairFileSystem(const std::shared_ptr<FileSystem>& base,
                   const std::string& dbname)
      : FileSystemWrapper(base),
        current_(CurrentFileName(dbname)),
        substitute_(RepairEnv::SubstituteOfCurrent(dbname)) {}

  static const char* kClassName() { return "RepairFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewSequentialFile(const std::string& fname,
                             const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext* dbg) override {
    return target()->NewSequentialFile(Substitute(fname), options, result, dbg);
  }
  IOStatus NewRandomAccessFile(const std::string& fname,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    return target()->NewRandomAccessFile(Substitute(fname), options, result,
                                         dbg);
  }
  IOStatus NewWritableFile(const std::string& fname, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    return target()->NewWritableFile(Substitute(fname), options, result, dbg);
  }
  IOStatus FileExists(const std::string& fname, const IOOptions& options,
                      IODebugContext* dbg) override {
    return target()->FileExists(Substitute(fname), options, dbg);
  }
  IOStatus DeleteFile(const std::string& fname, const IOOptions& options,
                      IODebugContext* dbg) override {
    return target()->DeleteFile(Substitute(fname), options, dbg);
  }
  IOStatus GetFileSize(const std::string& fname, const IOOptions& options,
                       uint64_t* size, IODebugContext* dbg) override {
    return target()->GetFileSize(Substitute(fname), options, size, dbg);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    return target()->RenameFile(Substitute(from), Substitute(to), options, dbg);
  }

 private:
  const std::string& Substitute(const std::string& fname) const {
    return fname == current_ ? substitute_ : fname;
  }

  const std::string current_;
  const std::string substitute_;
};

}  // namespace

RepairEnv::RepairEnv(Env* env, const std::string& dbname)
    : base_(env->GetFileSystem()),
      env_(std::make_unique<CompositeEnvWrapper>(
          env, std::make_shared<RepairFileSystem>(base_, dbname))) {}

DBOptions RepairEnv::Apply(const DBOptions& options) const {
  DBOptions result = options;
  result.env = env_.get();
  return result;
}

std::string RepairEnv::SubstituteOfCurrent(const std::string& dbname) {
  return TempFileName(dbname, 0);
}

}  // namespace ROCKSDB_NAMESPACE
