#include "serve/http/http_connection.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace inlay::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Read at once; also how much of the next request may wait in memory for the reply in progress.
constexpr size_t kReadSize = size_t{16} << 10;

// How long a client may take to read the last reply and close. Without this time the system would
// drop the reply when bytes arrive that nobody reads.
constexpr absl::Duration kLingerTime = absl::Seconds(2);

// More than this stays allocated only while it is needed.
constexpr size_t kKeptCapacity = 1024;

}  // namespace

template <typename Act>
void HttpConnection::Try(const Act& act) noexcept {
  try {
    act();
  } catch (const std::bad_alloc&) {
    OnOutOfMemory();
  } catch (const std::length_error&) {
    OnOutOfMemory();
  } catch (const std::exception&) {
    Close();
  }
}

template <typename Act>
auto HttpConnection::Locked(Act act) {
  return [self = shared_from_this(), act = std::move(act)](const auto&... results) {
    const std::lock_guard lock(self->mutex_);
    self->Try([&] { act(results...); });
  };
}

template <typename Act>
void HttpConnection::Post(Act act) {
  asio::post(socket_.get_executor(), Locked(std::move(act)));
}

HttpConnection::HttpConnection(HttpSocket socket, ConnectionOwner* owner)
    : owner_(owner), socket_(std::move(socket)), timer_(socket_.get_executor()) {}

void HttpConnection::Start() {
  const std::lock_guard lock(mutex_);
  Try([this] { Begin(); });
}

void HttpConnection::Stop() noexcept {
  try {
    Post([this] { Close(); });
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    Close();
  }
}

bool HttpConnection::EndIfIdle() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kIdle) return false;
  Close();
  return true;
}

// Called with the reply's lock, not with the connection's.
bool HttpConnection::Wake() noexcept {
  try {
    Post([this] { Flush(); });
    return true;
  } catch (const std::exception&) {
    // What waits for the socket will notice that the connection has ended. The socket is open, as
    // the queue has not been closed.
    ::shutdown(socket_.native_handle(), SHUT_RDWR);
    return false;
  }
}

void HttpConnection::OnOutOfMemory() noexcept {
  try {
    if (state_ == State::kHeader || state_ == State::kBody) {
      FreeText(in_);
      return Refuse(503, "there is not enough memory for the request");
    }
  } catch (const std::exception&) {
  }
  Close();
}

void HttpConnection::Begin() {
  error_code error;
  socket_.non_blocking(true, error);
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  socket_.set_option(asio::socket_base::keep_alive(true), error);
  SetDeadline(owner_->options().header_timeout);
  Read();
}

void HttpConnection::Read() {
  if (reading_ || ended_ || state_ == State::kClosed) return;
  if (state_ == State::kReply && in_.size() >= kReadSize) return;
  // No buffer is held while there is nothing to read.
  socket_.async_wait(HttpSocket::wait_read,
                     Locked([this](const error_code& error) { OnReadable(error); }));
  reading_ = true;
}

void HttpConnection::OnReadable(const error_code& error) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) return Close();
  std::array<char, kReadSize> buffer;
  error_code read_error;
  const size_t count = socket_.read_some(asio::buffer(buffer), read_error);
  if (read_error == asio::error::eof) return OnEnd();
  if (read_error && read_error != asio::error::would_block &&
      read_error != asio::error::interrupted) {
    return Close();
  }
  if (state_ != State::kLinger) {
    in_.append(buffer.data(), count);
    Advance();
  }
  Read();
}

// The client has closed the connection, or its sending side. Only a reply that is already complete
// is still sent.
void HttpConnection::OnEnd() {
  ended_ = true;
  if (state_ != State::kReply || !reply_->IsFinished()) Close();
}

void HttpConnection::Flush() {
  if (writing_ || state_ == State::kClosed || state_ == State::kLinger) return;
  if (out_.empty() && reply_ != nullptr && !last_taken_) {
    switch (reply_->Take(out_)) {
      case ReplyQueue::Outcome::kOpen:
        break;
      case ReplyQueue::Outcome::kFinished:
        last_taken_ = true;
        break;
      case ReplyQueue::Outcome::kBroken:
        return Close();
      case ReplyQueue::Outcome::kLost:
        return Refuse(500, "the server has dropped the request");
      case ReplyQueue::Outcome::kNoMemory:
        return Refuse(503, "there is not enough memory for the request");
    }
  }
  if (out_.empty()) {
    if (last_taken_) return OnReplySent();
    if (state_ == State::kReply) SetDeadline(absl::InfiniteDuration());
    return;
  }
  socket_.async_write_some(
      asio::buffer(out_.data() + sent_, out_.size() - sent_),
      Locked([this](const error_code& error, size_t count) { OnWritten(error, count); }));
  writing_ = true;
  if (state_ == State::kReply) SetDeadline(owner_->options().write_timeout);
}

void HttpConnection::OnWritten(const error_code& error, size_t count) {
  writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) return Close();
  sent_ += count;
  if (reply_ != nullptr) reply_->Sent(count);
  if (sent_ == out_.size()) {
    out_.clear();
    if (out_.capacity() > kKeptCapacity) FreeText(out_);
    sent_ = 0;
  }
  Flush();
}

void HttpConnection::SetDeadline(absl::Duration from_now) {
  const auto now = std::chrono::steady_clock::now();
  deadline_ =
      from_now < absl::Hours(24 * 365) ? now + absl::ToChronoNanoseconds(from_now) : Time::max();
  if (deadline_ < armed_) ArmTimer();
}

// A deadline that moves away leaves the timer as it is: when it fires it is armed anew.
void HttpConnection::ArmTimer() {
  timer_.expires_at(deadline_);
  timer_.async_wait(Locked([this](const error_code& error) { OnTimer(error); }));
  armed_ = deadline_;
}

void HttpConnection::OnTimer(const error_code& error) {
  if (state_ == State::kClosed || error == asio::error::operation_aborted) return;
  armed_ = Time::max();
  if (std::chrono::steady_clock::now() >= deadline_) {
    OnDeadline();
  } else if (deadline_ != Time::max()) {
    ArmTimer();
  }
}

void HttpConnection::Linger() {
  error_code error;
  socket_.shutdown(HttpSocket::shutdown_send, error);
  if (error || ended_) return Close();
  state_ = State::kLinger;
  FreeText(in_);
  SetDeadline(kLingerTime);
  Read();
}

void HttpConnection::Close() noexcept {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (reply_ != nullptr) reply_->Close();  // first: from here on nobody uses the socket
  reply_.reset();
  error_code error;
  socket_.close(error);
  timer_.cancel();
  owner_->Remove(this);
}

}  // namespace inlay::serve
