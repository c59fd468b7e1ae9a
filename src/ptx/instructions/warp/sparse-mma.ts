import {
  type Architecture,
  decodeOperand,
  findTensorCoreArithmetic,
  fusedDotProduct,
  type OperandFormatName,
  operandFormats,
} from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import { integerConstant, vectorSlots, wrongOperands } from '../operands.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { gather, layoutOfA, layoutOfB, layoutOfC, scatter } from './mma-fragment.js';
import { faultOfLanes } from './mma-operands.js';
import { columnsOfMetadata, metadataLayout, selectorsOf } from './sparse-metadata.js';

/** Types of A and B: their bits, and the names of their formats for tensor cores. */
const types: Readonly<
  Record<string, readonly [bits: 8 | 16 | 32, format: OperandFormatName | null]>
> = {
  f16: [16, 'fp16'],
  bf16: [16, 'bf16'],
  tf32: [32, 'tf32'],
  e4m3: [8, 'e4m3'],
  e5m2: [8, 'e5m2'],
  s8: [8, null],
  u8: [8, null],
};

/** K by the bits of an element. Source: PTX ISA, "mma.sp": shapes. */
const depths: Readonly<Record<8 | 16 | 32, readonly number[]>> = {
  32: [8, 16],
  16: [16, 32],
  8: [32, 64],
};

/** The form of the instruction in the text: `sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32`. */
interface Form {
  readonly k: number;
  readonly a: string;
  readonly b: string;
  readonly accumulator: 'f32' | 'f16' | 's32';
  readonly saturates: boolean;
  readonly isOrdered: boolean;
}

function formOf(modifiers: readonly string[]): Form | null {
  const saturates = modifiers.includes('satfinite');
  const rest = modifiers.filter((one) => one !== 'satfinite' && !(one === 'kind::f8f6f4'));
  const [sparse, , aligned, shape = '', row, col, d, a, b, c] = rest;
  const k = Number(/^m16n8k(\d+)$/.exec(shape)?.[1] ?? NaN);
  const isForm = rest.length === 10 && aligned === 'aligned' && row === 'row' && col === 'col';
  if (!isForm || !(a in types) || !(b in types) || c !== d) return null;
  const isInteger = types[a][1] === null;
  const accumulators = isInteger ? ['s32'] : ['f32', 'f16'];
  if (types[a][0] !== types[b][0] || (types[b][1] === null) !== isInteger) return null;
  if (!accumulators.includes(d) || !depths[types[a][0]].includes(k)) return null;
  if (saturates && !isInteger) return null;
  const isOrdered = sparse === 'sp::ordered_metadata';
  return { k, a, b, accumulator: d as Form['accumulator'], saturates, isOrdered };
}

/** One element of D: from C, and from the stored elements of a row with those of B in their columns. */
type Sum = (a: readonly number[], b: readonly number[], c: number) => number;

/** The sums of a form. Throws a RequestError for sums that are not modelled. */
function sumOf(architecture: Architecture, { a, b, accumulator, saturates }: Form): Sum {
  const [aFormat, bFormat] = [types[a][1], types[b][1]];
  if (aFormat === null || bFormat === null) {
    const number = (type: string, pattern: number) =>
      type === 's8' ? (pattern << 24) >> 24 : pattern;
    return (x, y, c) => {
      const sum = x.reduce((all, one, i) => all + number(a, one) * number(b, y[i]), c | 0);
      return saturates ? Math.min(Math.max(sum, -(2 ** 31)), 2 ** 31 - 1) : sum;
    };
  }
  const arithmetic = findTensorCoreArithmetic({
    instruction: 'mma.sync',
    architecture,
    a: aFormat,
    b: bFormat,
    accumulator: accumulator === 'f32' ? 'fp32' : 'fp16',
  });
  if (arithmetic.sequence !== 'chain')
    throw new RequestError(
      `sparse products of ${aFormat} on ${architecture}, which has no instruction for them`,
    );
  const { productsPerSum } = arithmetic;
  const decode = (format: OperandFormatName, patterns: readonly number[]) =>
    patterns.map((pattern) => decodeOperand(operandFormats[format], pattern));
  return (x, y, c) => {
    const [p, q] = [decode(aFormat, x), decode(bFormat, y)];
    let sum = c;
    for (let i = 0; i < p.length; i += productsPerSum)
      sum = fusedDotProduct(
        arithmetic,
        p.slice(i, i + productsPerSum),
        q.slice(i, i + productsPerSum),
        sum,
      );
    return sum;
  };
}

const [rows, columns] = [16, 8] as const;

function lower(
  architecture: Architecture,
  { modifiers, operands, opcode }: InstructionRequest,
): WarpOperation | Unsupported {
  const form = formOf(modifiers);
  if (form === null) return { unsupported: `${[opcode, ...modifiers].join('.')}, a sparse form` };
  let sum: Sum;
  try {
    sum = sumOf(architecture, form);
  } catch (error) {
    if (error instanceof RequestError) return { unsupported: error.message };
    throw error;
  }
  const { k, a, b, accumulator, isOrdered } = form;
  const layouts = {
    a: layoutOfA(rows, k / 2, types[a][0]),
    b: layoutOfB(k, types[b][0]),
    c: layoutOfC(rows, accumulator === 'f16' ? 16 : 32),
  };
  const layout = metadataLayout(types[a][0], k);
  const [d, aSlots, bSlots, c] = operands.map(vectorSlots);
  const [metadata, selected] = [operands[4], integerConstant(operands[5])];
  const isFragment = (slots: readonly unknown[] | null, count: number) => slots?.length === count;
  if (
    !(d && aSlots && bSlots && c && metadata?.kind === 'register' && operands.length === 6) ||
    !isFragment(d, layouts.c.registers) ||
    !isFragment(aSlots, layouts.a.registers) ||
    !isFragment(bSlots, layouts.b.registers) ||
    !isFragment(c, layouts.c.registers)
  )
    return wrongOperands('D, A of half as many registers, B, C, metadata, a selector');
  if (selected === null || selected < 0 || selected >= selectorsOf(layout))
    return { unsupported: `a selector but 0 to ${selectorsOf(layout) - 1}` };
  const [stored, transposed, sums] = [(rows * k) / 2, columns * k, rows * columns].map(
    (size) => new Uint32Array(size),
  );
  return {
    converged: 'warp',
    meaning: 'is',
    writes: d,
    reads: [...aSlots, ...bSlots, ...c, metadata.slot],
    execute: (registers, lanes) => {
      gather(registers, aSlots, layouts.a, stored);
      gather(registers, bSlots, layouts.b, transposed);
      gather(registers, c, layouts.c, sums);
      const words = registers.words(metadata.slot);
      const found = columnsOfMetadata(layout, k, words, { selector: selected, isOrdered });
      if (typeof found === 'string') return found;
      for (let row = 0; row < rows; row++) {
        const first = (row * k) / 2;
        const elements = [...stored.subarray(first, first + k / 2)];
        for (let column = 0; column < columns; column++) {
          const others = elements.map((_, i) => transposed[column * k + found[first + i]]);
          sums[row * columns + column] = sum(elements, others, sums[row * columns + column]);
        }
      }
      scatter(registers, d, layouts.c, sums);
      return faultOfLanes(lanes);
    },
  };
}

/**
 * `mma.sp` on an architecture: A stored as half of its elements, with their columns as metadata. Sums are those of a dense `mma.sync` of the
 * stored elements and B's in their columns, which is an assumption: nobody has compared them.
 */
export function sparseMmaInstructions(architecture: Architecture): readonly WarpInstruction[] {
  return ['sp', 'sp::ordered_metadata'].map((sparse) => ({
    name: `mma.${sparse}`,
    meaning: 'is',
    evidence: 'isa',
    source: 'PTX ISA, Warp Level Matrix Multiply-Accumulate Instructions: mma.sp',
    lower: (request) => lower(architecture, request),
  }));
}
