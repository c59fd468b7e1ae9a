import { joined, type InstructionText } from './instruction-text.js';

/** What a change may look at beside the instruction. */
export interface Surroundings {
  /** Registers of a type that the instructions just before name, the nearest first. */
  readonly registersNear: (prefix: string) => readonly string[];
  /** Whether a register is what a shuffle just before gave. */
  readonly isShuffled: (register: string) => boolean;
  /** A number in [0, 1). */
  readonly random: () => number;
}

/** A change of what an instruction computes: another text for it, or null where it has nothing to change. */
type Change = (one: InstructionText, around: Surroundings) => string | null;

const registerName = /%[a-z]+\d+\b/g;

function pick<T>(list: readonly T[], random: () => number): T | null {
  return list.length === 0 ? null : list[Math.floor(random() * list.length)];
}

/** The instruction with one of its operands changed. */
function withOperand(one: InstructionText, at: number, operand: string): string {
  return joined({ ...one, operands: one.operands.map((own, i) => (i === at ? operand : own)) });
}

/** The letters before the number of a register, which has its type. */
function prefixOf(register: string): string {
  return register.replace(/\d+$/, '');
}

/** Opcodes of which the first operand is no result. */
const withoutResult = /^(?:st|cp|red|mbarrier|fence|bar|bra|call|ret|wgmma|tcgen05|prefetch)\b/;
/** Control flow and order, which `src/ptx/mutants` changes. */
const ofOrder = /^(?:bar|bra|brx|call|ret|exit|mbarrier|fence|membar|setmaxnreg|elect|griddep)/;

function firstSource({ mnemonic }: InstructionText): number {
  return withoutResult.test(mnemonic) ? 0 : 1;
}

/** A source register becomes another one of its type, of the instruction or of those just before. */
const otherOperand: Change = (one, { registersNear, random }) => {
  if (ofOrder.test(one.mnemonic)) return null;
  const places = one.operands.flatMap((operand, at) =>
    at < firstSource(one)
      ? []
      : [...operand.matchAll(registerName)].map(([register], i) => ({ at, register, i })),
  );
  const place = pick(places, random);
  if (place === null) return null;
  const others = registersNear(prefixOf(place.register)).filter((name) => name !== place.register);
  const other = pick(others.slice(0, 8), random);
  if (other === null) return null;
  let count = 0;
  return withOperand(
    one,
    place.at,
    one.operands[place.at].replace(registerName, (name) => (count++ === place.i ? other : name)),
  );
};

const opposite: Readonly<Record<string, string>> = {
  lt: 'ge',
  ge: 'lt',
  gt: 'le',
  le: 'gt',
  eq: 'ne',
  ne: 'eq',
};

/** A guard, a comparison or a selection is negated. */
const negatedPredicate: Change = (one) => {
  const { guard, mnemonic, operands } = one;
  if (guard !== '') {
    const negated = guard.startsWith('@!') ? guard.replace('!', '') : guard.replace('@', '@!');
    return joined({ ...one, guard: negated });
  }
  const [opcode, comparison] = mnemonic.split('.');
  if (opcode === 'setp' && opposite[comparison] !== undefined)
    return joined({ ...one, mnemonic: mnemonic.replace(comparison, opposite[comparison]) });
  if (opcode !== 'selp') return null;
  const [d, a, b, p] = operands;
  return joined({ ...one, operands: [d, b, a, p] });
};

/** A floating-point constant moves to the next or the previous number; zeros and NaNs stay. */
const oneUlp: Change = (one, { random }) => {
  const at = one.operands.findIndex((operand) => /^0[fd][0-9a-f]+$/i.test(operand));
  if (at < 0) return null;
  const operand = one.operands[at];
  const digits = operand.length - 2;
  const bits = BigInt(`0x${operand.slice(2)}`);
  const magnitude = bits & ((1n << BigInt(4 * digits - 1)) - 1n);
  if (magnitude === 0n || /^0f[7f]f[c-f]/i.test(operand)) return null;
  // An infinity becomes the largest finite number.
  const isInfinite = /^0f[7f]f800000$/i.test(operand);
  const moved = bits + (isInfinite || random() < 0.5 ? -1n : 1n);
  const text = moved.toString(16).toUpperCase().padStart(digits, '0');
  return withOperand(one, at, `${operand.slice(0, 2)}${text}`);
};

const withNumbers =
  /^(?:add|sub|mul|mad|shl|shr|and|or|xor|setp|bfe|bfi|min|max|div|rem|shfl|mov)\b/;

/** A whole number becomes one more or one less. */
const oneMore: Change = (one, { random }) => {
  if (!withNumbers.test(one.mnemonic)) return null;
  const places = one.operands.flatMap((operand, at) => (/^-?\d+$/.test(operand) ? [at] : []));
  const at = pick(places, random);
  if (at === null) return null;
  const number = Number(one.operands[at]);
  if (!Number.isSafeInteger(number)) return null;
  return withOperand(one, at, String(number + (number === 0 || random() < 0.5 ? 1 : -1)));
};

/** Bytes of the accesses of an instruction: of one element, and of all. */
function accessBytes(mnemonic: string): readonly number[] {
  const width = Number(/\.[bsuf](8|16|32|64)\b/.exec(mnemonic)?.[1] ?? 16) / 8;
  const count = Number(/\.v([248])\b/.exec(mnemonic)?.[1] ?? 1);
  return /^(?:ldmatrix|stmatrix|cp)\b/.test(mnemonic) ? [2, 16] : [width, width * count];
}

/** The address of an access moves by an element, or by all that it reads. */
const movedAddress: Change = (one, { random }) => {
  if (!/^(?:ld|st|ldmatrix|stmatrix|cp)\./.test(one.mnemonic)) return null;
  if (/^ld\.param|mbarrier|tensor|bulk\.commit|wait|commit/.test(one.mnemonic)) return null;
  const places = one.operands.flatMap((operand, at) => (operand.startsWith('[') ? [at] : []));
  const at = pick(places, random);
  const bytes = pick(accessBytes(one.mnemonic), random);
  const [, base, sign = '+', offset = '0'] =
    /^\[\s*([%\w$]+)\s*(?:([+-])\s*(-?\d+))?\s*\]$/.exec(one.operands[at ?? 0]) ?? [];
  if (at === null || bytes === null || base === undefined) return null;
  const moved = Number(`${sign === '-' ? '-' : ''}${offset}`) + (random() < 0.5 ? -bytes : bytes);
  return withOperand(one, at, `[${base}+${moved}]`);
};

const floats = /\.(?:f32|f64|f16|bf16)(?:x2)?$/;

/** The result is rounded towards zero instead of to nearest. */
const towardsZero: Change = (one) => {
  const { mnemonic } = one;
  if (mnemonic.includes('.rn.'))
    return joined({ ...one, mnemonic: mnemonic.replace('.rn', '.rz') });
  const plain = /^(add|sub|mul)((?:\.ftz)?\.f32)$/.exec(mnemonic);
  return plain && joined({ ...one, mnemonic: `${plain[1]}.rz${plain[2]}` });
};

/** Copies, to a register of 32 or 64 bits. */
function copy(one: InstructionText, source: string): string {
  const isWide = /x2$|\.[bsuf]64$/.test(one.mnemonic);
  return joined({
    ...one,
    mnemonic: isWide ? 'mov.b64' : 'mov.b32',
    operands: [one.operands[0], source],
  });
}

/** The elements of `{a, b}`. */
function elementsOf(operand: string): readonly string[] {
  return operand
    .replace(/[{}]/g, '')
    .split(',')
    .map((name) => name.trim());
}

/** A step of a sum, a maximum or a chain of products is left out. */
const missingStep: Change = (one, { isShuffled }) => {
  const { mnemonic, operands } = one;
  const [d, a, b, c] = operands;
  if (/^shfl\.sync\.bfly/.test(mnemonic)) return copy(one, a);
  if (/^mma\.sync/.test(mnemonic)) {
    const [from, to] = [elementsOf(c), elementsOf(d)];
    return to
      .map((name, i) => joined({ ...one, mnemonic: 'mov.b32', operands: [name, from[i]] }))
      .join(' ');
  }
  if (/^(?:wgmma\.mma_async|tcgen05\.mma)/.test(mnemonic)) return '';
  if (/^fma\.rn/.test(mnemonic) && floats.test(mnemonic)) return copy(one, c);
  const isSum = /^(?:add|max)\./.test(mnemonic) && floats.test(mnemonic);
  if (!isSum || !a.startsWith('%') || !b.startsWith('%')) return null;
  return copy(one, isShuffled(a) ? b : a);
};

/** A sign is flipped. */
const otherSign: Change = (one) => {
  const { mnemonic, operands, guard } = one;
  if (!floats.test(mnemonic)) return null;
  const [opcode] = mnemonic.split('.');
  if (opcode === 'add' || opcode === 'sub')
    return joined({ ...one, mnemonic: mnemonic.replace(opcode, opcode === 'add' ? 'sub' : 'add') });
  if (opcode === 'neg') return copy(one, operands[1]);
  if (!/^(?:mul|fma|ex2|div|rcp|lg2)$/.test(opcode) || mnemonic.endsWith('x2')) return null;
  if (!mnemonic.endsWith('f32')) return null;
  return `${joined(one)} ${guard}neg.f32 ${operands[0]}, ${operands[0]};`;
};

/** A minimum for a maximum, and the other way around. */
const otherExtreme: Change = (one) => {
  const { mnemonic } = one;
  if (!/^(?:max|min)\./.test(mnemonic)) return null;
  const other = mnemonic.startsWith('max') ? 'min' : 'max';
  return joined({ ...one, mnemonic: mnemonic.replace(/^\w+/, other) });
};

/** A factor is left out. */
const missingFactor: Change = (one, { random }) => {
  const { mnemonic, operands } = one;
  const [d, a, b, c] = operands;
  const kept = random() < 0.5 ? a : b;
  if (/^(?:mul|div)\./.test(mnemonic) && floats.test(mnemonic))
    return copy(one, mnemonic.startsWith('div') ? a : kept);
  if (/^fma\.rn/.test(mnemonic) && floats.test(mnemonic))
    return joined({ ...one, mnemonic: mnemonic.replace('fma', 'add'), operands: [d, kept, c] });
  return null;
};

/** The changes by the kind of mistake that they stand for. */
export const semanticChanges: Readonly<Record<string, Change>> = {
  'another operand': otherOperand,
  'a predicate negated': negatedPredicate,
  'a constant off by an ulp': oneUlp,
  'an integer off by one': oneMore,
  'an address off by an element': movedAddress,
  'rounded towards zero': towardsZero,
  'a step of a reduction left out': missingStep,
  'a sign flipped': otherSign,
  'minimum for maximum': otherExtreme,
  'a factor left out': missingFactor,
};
