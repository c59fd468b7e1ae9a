// What host code reads and writes: files of a folder, and numbers of the command line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cuda_check.h"

struct Folder {
  std::string path;

  template <typename T> T *allocate(char const *name, size_t count, int fill) const {
    T *there = nullptr;
    CHECK_CUDA(cudaMalloc(&there, count * sizeof(T)));
    CHECK_CUDA(cudaMemset(there, fill, count * sizeof(T)));
    std::ofstream(path + "/allocated.txt", std::ios::app) << name << " " << there << " " << count * sizeof(T) << " " << fill << "\n";
    return there;
  }

  template <typename T> T *read(char const *name, size_t count) const {
    std::vector<T> here(count);
    std::ifstream file(path + "/" + name + ".bin", std::ios::binary);
    if (!file.read(reinterpret_cast<char *>(here.data()), count * sizeof(T))) {
      std::fprintf(stderr, "%s/%s.bin: %zu bytes are wanted\n", path.c_str(), name, count * sizeof(T));
      std::exit(2);
    }
    T *there = allocate<T>(name, count, 0);
    CHECK_CUDA(cudaMemcpy(there, here.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    return there;
  }

  template <typename T> void write(char const *name, T const *there, size_t count) const {
    std::vector<T> here(count);
    CHECK_CUDA(cudaMemcpy(here.data(), there, count * sizeof(T), cudaMemcpyDeviceToHost));
    std::ofstream(path + "/" + name + ".bin", std::ios::binary).write(reinterpret_cast<char *>(here.data()), count * sizeof(T));
  }
};

// "name=value" of a command line, behind the program and the folder.
inline std::map<std::string, double> numbers_of(int count, char **words) {
  std::map<std::string, double> given;
  for (int i = 2; i < count; i++) {
    std::string const word = words[i];
    given[word.substr(0, word.find('='))] = std::strtod(word.substr(word.find('=') + 1).c_str(), nullptr);
  }
  return given;
}
