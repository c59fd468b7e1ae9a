import type { LaneInstruction, RegisterWidth } from '../instructions/index.js';
import type { Constant, LaneOperation, Source } from '../program/index.js';
import type { Emit, SourceValue, Vectors } from '../../isa/vectors/index.js';
import {
  createFunctionBody,
  type Expression,
  type FunctionBody,
  i32x4,
  i64x2,
  lowWords,
  type Surroundings,
  v128,
} from '../../isa/webassembly/index.js';

/**
 * The code of an instruction on four lanes with everything known except the variables of its sources. It leaves the
 * vectors of all its results on the stack, the last one on top.
 */
export interface Template {
  readonly code: Uint8Array;
  /**
   * Places of the two-byte numbers of variables, and the index of the vector that each is, counted through all sources.
   */
  readonly holes: readonly { readonly at: number; readonly vector: number }[];
}

/** Number of vectors that hold a value of four lanes. */
export const vectorCount: Readonly<Record<RegisterWidth, number>> = {
  pred: 1,
  16: 1,
  32: 1,
  64: 2,
  128: 4,
};

/** The number of a template's first temporary variable, and the maximum number of them. */
export const temporaries = { first: 16, count: 112 } as const;

/** Whether a source is a constant. */
export function isConstant(source: Source): source is Constant {
  return 'bits' in source;
}

const zero = i32x4.splat(0);

/** The bits of a constant in a register of `width` bits. */
function constantValue({ bits }: Constant, width: RegisterWidth): SourceValue {
  if (width === 'pred')
    return {
      vectors: [i32x4.splat(bits === 0n ? 0 : -1)],
      constant: bits === 0n ? 0n : 1n,
    };
  const constant = BigInt.asUintN(width, bits);
  if (width <= 32) return { vectors: [i32x4.splat(Number(constant))], constant };
  const halves = Array.from({ length: width / 64 }, (_, half) =>
    i64x2.splat(BigInt.asUintN(64, constant >> BigInt(64 * half))),
  );
  return { vectors: halves.flatMap((half) => [half, half]), constant };
}

/** Vectors of one width as those of another: the low bits, or zero-extended. */
function resized(
  { keep }: FunctionBody,
  vectors: Vectors,
  from: RegisterWidth,
  to: RegisterWidth,
): Vectors {
  if (from === to) return vectors;
  const [have, want] = [vectorCount[from], vectorCount[to]];
  if (have === want)
    return to === 16 && from === 32 ? [v128.and(vectors[0], i32x4.splat(0xffff))] : vectors;
  if (have === 1) {
    const word = keep(vectors[0]);
    const low = [i64x2.extendLowI32x4U(word), i64x2.extendHighI32x4U(word)];
    return want === 2 ? low : [...low, zero, zero];
  }
  if (want === 4) return [...vectors, zero, zero];
  if (want === 2) return vectors.slice(0, 2);
  const words = lowWords(vectors[0], vectors[1]);
  return [to === 16 ? v128.and(words, i32x4.splat(0xffff)) : words];
}

const localGet = 0x20;

function build(
  emit: Emit,
  { instruction, sources, destinations }: LaneOperation,
  surroundings: Surroundings,
): Template {
  const body = createFunctionBody(temporaries.first, surroundings);
  const holes: Template['holes'][number][] = [];
  let vectors = 0;
  const hole = (): Expression => {
    const vector = vectors++;
    return ({ code }) => {
      code.byte(localGet);
      holes.push({ at: code.length(), vector });
      code.byte(0x80);
      code.byte(0x00);
    };
  };
  const values = sources.map((source, i): SourceValue => {
    const width = instruction.sources[i];
    if (isConstant(source)) return constantValue(source, width);
    const whole = Array.from({ length: vectorCount[source.width] }, hole);
    if (source.width === width) return { vectors: whole, constant: null };
    const cut = resized(body, whole, source.width, width);
    return { vectors: cut.map((vector) => body.keep(vector)), constant: null };
  });
  const results = emit(body, ...values);
  destinations.forEach((slot, i) => {
    const width = instruction.destinations[i];
    if (results[i].length !== vectorCount[width])
      throw new Error(`${instruction.name} gives ${results[i].length} vectors for b${width}`);
    for (const vector of resized(body, results[i], width, slot?.width ?? width)) vector(body);
  });
  if (body.end() > temporaries.first + temporaries.count)
    throw new Error(`${instruction.name} takes ${body.end() - temporaries.first} variables`);
  return { code: body.code.written().slice(), holes };
}

/** Everything that a template depends on besides the instruction. */
function formOf({ sources, destinations }: LaneOperation): string {
  let form = '';
  for (const slot of destinations) form += `${slot?.width ?? ''},`;
  for (const source of sources)
    form += isConstant(source) ? `=${source.bits},` : `${source.width},`;
  return form;
}

/**
 * Creates a function that gives the template of an operation whose instruction has code, made once for each form
 * of operands.
 */
export function createTemplates(
  surroundings: Surroundings,
): (emit: Emit, operation: LaneOperation) => Template {
  const known = new Map<LaneInstruction, Map<string, Template>>();
  return (emit, operation) => {
    let forms = known.get(operation.instruction);
    if (forms === undefined) known.set(operation.instruction, (forms = new Map()));
    const form = formOf(operation);
    let template = forms.get(form);
    if (template === undefined) forms.set(form, (template = build(emit, operation, surroundings)));
    return template;
  };
}
