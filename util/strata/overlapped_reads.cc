//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/overlapped_reads.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "test_util/sync_point.h"
#include "util/aligned_buffer.h"

namespace ROCKSDB_NAMESPACE {

struct OverlappedReads::Read {
  const OverlappedReadFile* file = nullptr;
  FSReadRequest request;
  // Not a local variable of Begin(), because a file system may use it until the
  // read has ended.
  IODebugContext debug_context;
  std::unique_ptr<char[]> buffer;
  bool has_ended = false;
  // Empty if the read failed.
  Slice result;
  void* io_handle = nullptr;
  IOHandleDeleter delete_io_handle;

  void OnEnd(const FSReadRequest& done) {
    has_ended = true;
    // A file system may return a pointer to its own memory, whose lifetime is
    // unknown. Such a result is not used.
    if (done.status.ok() && done.result.data() == request.scratch) {
      result = done.result;
    }
    // After an error the bytes are read again if the table reader requests
    // them.
    IGNORE_STATUS_IF_ERROR(done.status);
    done.status.PermitUncheckedError();
  }

  // Allocates the buffer for the result.
  void MakeBuffer(size_t alignment) {
    // Its bytes are not initialized, because the read writes them.
    buffer.reset(new char[request.len + alignment - 1]);
    const auto address = reinterpret_cast<uintptr_t>(buffer.get());
    request.scratch = buffer.get() + (Roundup(address, alignment) - address);
  }

  ~Read() {
    assert(has_ended || io_handle == nullptr);
    if (io_handle != nullptr && delete_io_handle != nullptr) {
      delete_io_handle(io_handle);
    }
    request.status.PermitUncheckedError();
  }
};

thread_local OverlappedReads* OverlappedReads::lent_ = nullptr;

//======== OverlappedReadFile

IOStatus OverlappedReadFile::Read(uint64_t offset, size_t n,
                                  const IOOptions& options, Slice* result,
                                  char* scratch, IODebugContext* dbg) const {
  if (OverlappedReads::lent_ != nullptr &&
      OverlappedReads::lent_->Take(this, offset, n, scratch, result)) {
    return IOStatus::OK();
  }
  return target()->Read(offset, n, options, result, scratch, dbg);
}

//======== OverlappedReads::Scope

OverlappedReads::Scope::Scope(OverlappedReads* reads)
    : outer_(std::exchange(lent_, reads)) {}

OverlappedReads::Scope::~Scope() { lent_ = outer_; }

//======== OverlappedReads

OverlappedReads::OverlappedReads(FileSystem* fs) : fs_(fs) {}

OverlappedReads::~OverlappedReads() {
  for (const std::unique_ptr<Read>& read : reads_) {
    Wait(read.get());
  }
}

bool OverlappedReads::Begin(const OverlappedReadFile& file, uint64_t offset,
                            size_t size, const IOOptions& options,
                            const std::string* request_id) {
  if (size > kMaxReadSize) {
    return false;
  }
  auto read = std::make_unique<Read>();
  read->file = &file;
  const size_t alignment =
      file.use_direct_io() ? file.GetRequiredBufferAlignment() : 1;
  // With direct I/O the read is aligned as the table reader will align it.
  const uint64_t begin = offset - offset % alignment;
  read->request.offset = begin;
  read->request.len =
      Roundup(static_cast<size_t>(offset - begin) + size, alignment);
  read->MakeBuffer(alignment);
  if (request_id != nullptr) {
    read->debug_context.SetRequestId(request_id);
  }
  const IOStatus s = file.target()->ReadAsync(
      read->request, options,
      [](FSReadRequest& done, void* arg) {
        static_cast<Read*>(arg)->OnEnd(done);
      },
      read.get(), &read->io_handle, &read->delete_io_handle,
      &read->debug_context);
  if (!s.ok()) {
    IGNORE_STATUS_IF_ERROR(s);
    s.PermitUncheckedError();
    is_async_ = false;
    return false;
  }
  if (read->io_handle == nullptr && !read->result.empty()) {
    is_async_ = false;
  }
  TEST_SYNC_POINT("OverlappedReads::Begin:Begun");
  reads_.push_back(std::move(read));
  return true;
}

bool OverlappedReads::Take(const OverlappedReadFile* file, uint64_t offset,
                           size_t n, char* scratch, Slice* result) {
  const auto found = std::find_if(
      reads_.begin(), reads_.end(), [&](const std::unique_ptr<Read>& read) {
        return read->file == file && read->request.offset <= offset &&
               offset - read->request.offset <= read->request.len &&
               n <= read->request.len - (offset - read->request.offset);
      });
  if (found == reads_.end()) {
    return false;
  }
  Read* const read = found->get();
  Wait(read);
  const size_t skip = static_cast<size_t>(offset - read->request.offset);
  // The result may be shorter than the request. A table reader requests no
  // bytes behind the end of a file, except that with direct I/O the last page
  // is read as a whole. Only a read of that page can have a result whose size
  // is not a multiple of the alignment.
  const size_t size =
      read->result.size() > skip ? std::min(n, read->result.size() - skip) : 0;
  const bool has_all =
      size == n ||
      (size > 0 && file->use_direct_io() &&
       read->result.size() % file->GetRequiredBufferAlignment() != 0);
  if (has_all) {
    memcpy(scratch, read->result.data() + skip, size);
    *result = Slice(scratch, size);
  } else {
    IGNORE_STATUS_IF_ERROR(IOStatus::IOError());
  }
  reads_.erase(found);
  return has_all;
}

void OverlappedReads::Wait(Read* read) {
  if (read->has_ended) {
    return;
  }
  std::vector<void*> handles{read->io_handle};
  IOStatus s = fs_->Poll(handles, /*min_completions=*/1);
  if (!read->has_ended) {
    // The read must not write to the buffer after that is freed.
    IGNORE_STATUS_IF_ERROR(s);
    s.PermitUncheckedError();
    s = fs_->AbortIO(handles);
    read->has_ended = true;
    read->result.clear();
  }
  s.PermitUncheckedError();  // bytes that did not arrive are read again
}

}  // namespace ROCKSDB_NAMESPACE
