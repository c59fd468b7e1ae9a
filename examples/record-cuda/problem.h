// What a program here is given: a folder with a file for every tensor, and numbers as name=value. The tensors go to the GPU, and what the
// kernels wrote comes back to the folder. On a GPU these programs run as they are; linked with recorder.cpp they tell what they launch.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#define CHECK(call)                                                                                          \
  if (cudaError_t status = (call); status != cudaSuccess)                                                    \
  throw std::runtime_error(std::string(#call) + ": " + cudaGetErrorString(status))

class Problem {
 public:
  Problem(int count, char** words) : folder(count > 1 ? words[1] : ".") {
    for (int i = 2; i < count; i++) {
      const std::string word = words[i];
      const auto equals = word.find('=');
      numbers[word.substr(0, equals)] = std::stod(word.substr(equals + 1));
    }
  }

  double number(const char* name) const { return numbers.at(name); }

  std::vector<char> bytes(const char* name) const {
    std::ifstream file(folder + "/" + name + ".bin", std::ios::binary);
    if (!file) throw std::runtime_error("no " + folder + "/" + name + ".bin");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // The elements of a file, on the host.
  template <typename T>
  std::vector<T> values(const char* name) const {
    const auto read = bytes(name);
    const T* first = reinterpret_cast<const T*>(read.data());
    return {first, first + read.size() / sizeof(T)};
  }

  // A tensor on the GPU, as its file has it.
  template <typename T>
  T* given(const char* name) {
    const auto read = bytes(name);
    T* at = empty<T>(name, read.size() / sizeof(T));
    CHECK(cudaMemcpy(at, read.data(), read.size(), cudaMemcpyHostToDevice));
    return at;
  }

  // Memory on the GPU: NaN, until a kernel writes it.
  template <typename T>
  T* empty(const char* name, size_t count) {
    T* at = nullptr;
    CHECK(cudaMalloc(reinterpret_cast<void**>(&at), count * sizeof(T)));
    CHECK(cudaMemset(at, 0xff, count * sizeof(T)));
    std::printf("tensor %s %p %zu\n", name, static_cast<void*>(at), count * sizeof(T));
    return at;
  }

  // The same, to come back to the folder.
  template <typename T>
  T* result(const char* name, size_t count) {
    T* at = empty<T>(name, count);
    results.push_back({name, at, count * sizeof(T)});
    return at;
  }

  void finish() {
    CHECK(cudaDeviceSynchronize());
    for (const auto& [name, at, size] : results) {
      std::vector<char> read(size);
      CHECK(cudaMemcpy(read.data(), at, size, cudaMemcpyDeviceToHost));
      std::ofstream(folder + "/" + name + ".bin", std::ios::binary).write(read.data(), size);
    }
  }

 private:
  struct Result {
    std::string name;
    void* at;
    size_t size;
  };
  std::string folder;
  std::map<std::string, double> numbers;
  std::vector<Result> results;
};

// The program: what is wrong is said on standard error, with status 1.
#define PROGRAM(run)                              \
  int main(int count, char** words) {             \
    std::setvbuf(stdout, nullptr, _IOLBF, 0);     \
    try {                                         \
      Problem problem(count, words);              \
      run(problem);                               \
      problem.finish();                           \
    } catch (const std::exception& error) {       \
      std::fprintf(stderr, "%s\n", error.what()); \
      return 1;                                   \
    }                                             \
  }
