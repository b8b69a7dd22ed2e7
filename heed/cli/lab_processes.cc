#include "heed/cli/lab_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "heed/core/parallel.h"

extern char** environ;

namespace heed::cli {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& each : texts) out.push_back(each.data());
  out.push_back(nullptr);
  return out;
}

// Ours, but with this number of threads, and on the CPU whatever the default device is.
std::vector<std::string> environment_with(int threads) {
  std::vector<std::string> out{"HEED_THREADS=" + std::to_string(threads), "HEED_DEVICE=cpu"};
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    if (!variable.starts_with("HEED_THREADS=") && !variable.starts_with("HEED_DEVICE=")) out.push_back(variable);
  }
  return out;
}

}  // namespace

LabProcesses::LabProcesses(const std::vector<LabJob>& jobs) {
  if (jobs.size() < 2) return;
  at_once_ = std::min(jobs.size(), static_cast<size_t>(thread_count()));
  threads_ = std::max(1, thread_count() / static_cast<int>(jobs.size()));
  for (const LabJob& job : jobs) processes_.push_back({.job = job});
  start_next();
}

LabProcesses::~LabProcesses() {
  for (const Process& each : processes_)
    if (each.state == Process::running) ::kill(each.id, SIGTERM);
  for (const Process& each : processes_)
    if (each.state == Process::running)
      while (::waitpid(each.id, nullptr, 0) < 0 && errno == EINTR) continue;
}

void LabProcesses::start(Process& process) {
  std::vector<std::string> arguments{"heed",    "lab", process.job.experiment->number,
                                     "--quiet", "-o",  (reports_.path() / std::to_string(&process - processes_.data())).string()};
  arguments.insert(arguments.end(), process.job.settings.begin(), process.job.settings.end());
  std::vector<std::string> environment = environment_with(threads_);
  std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(environment);
  const pid_t parent = ::getpid();
  process.id = ::fork();
  if (process.id == 0) {  // only async-signal-safe calls
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, file);
    ::execve("/proc/self/exe", argv.data(), envp.data());
    ::_exit(127);
  }
  process.state = process.id > 0 ? Process::running : Process::ended;  // without a process the caller runs the experiment
}

void LabProcesses::reap() {
  for (Process& each : processes_)
    if (each.state == Process::running && ::waitpid(each.id, nullptr, WNOHANG) != 0) each.state = Process::ended;
}

void LabProcesses::start_next() {
  auto running = static_cast<size_t>(
      std::count_if(processes_.begin(), processes_.end(), [](const Process& each) { return each.state == Process::running; }));
  for (Process& each : processes_) {
    if (running == at_once_) return;
    if (each.state != Process::waiting) continue;
    start(each);
    if (each.state == Process::running) ++running;
  }
}

void LabProcesses::wait_for(const lab::Experiment& experiment, const std::function<bool()>& stop,
                            const std::function<void(const std::string&)>& say) {
  for (;;) {
    reap();
    start_next();
    std::string running;
    bool found = false;
    for (const Process& each : processes_) {
      if (each.state == Process::ended) continue;
      found = found || each.job.experiment == &experiment;
      if (each.state == Process::running) running += (running.empty() ? "training " : ", ") + each.job.experiment->number;
    }
    if (!found) return;
    if (stop()) fail<StoppedError>("lab: stopped");
    say(running);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace heed::cli
