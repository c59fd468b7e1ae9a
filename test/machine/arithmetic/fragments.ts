import { findArithmetic, type WordInstruction } from '../../../src/machine/isa/arithmetic.js';
import { mix, specialWords } from './patterns.js';
import { createRegisters, type WarpRegisters } from './registers.js';

/** The instruction on single registers of that name. */
export function wordInstruction(name: string, operands?: number): WordInstruction {
  const instruction = findArithmetic(name, operands);
  if (instruction.width === 2) throw new Error(`${name} is packed`);
  return instruction;
}

/** Registers full of words that follow from the seed: special ones, short integers, and any bits. */
export function randomRegisters(registersPerLane: number, seed: number): WarpRegisters {
  const registers = createRegisters(registersPerLane);
  registers.words.forEach((_, i) => {
    const word = mix(seed + Math.imul(i, 0x9e3779b9));
    const choice = mix(word) & 7;
    if (choice < 2)
      registers.words[i] = specialWords[word % specialWords.length] ^ (word & (2 ** 31));
    else if (choice < 4) registers.words[i] = word & 0x3f;
    else registers.words[i] = word;
  });
  return registers;
}
