import type { LaneInstruction, RegisterWidth } from '../../../src/ptx/instructions/index.js';
import { isDrawn, isWrongUnderGuards, withoutChoices } from './assembler-choices.js';
import { statement } from './row-kernels.js';

/** Registers of each class that a random kernel has, and words of 64 bits that each lane writes. */
const perClass = 6;
export const resultWords = 4 * perClass;
/** Words of 64 bits that each lane reads. */
export const inputWords = 2 * perClass;

/** Widths of the registers of a random kernel. */
type Class = 'pred' | 16 | 32 | 64;
const prefixes: Readonly<Record<Class, string>> = { pred: '%p', 16: '%h', 32: '%r', 64: '%d' };

/** A small generator of numbers (xorshift), the same everywhere. */
function createDraw(seed: number): (below: number) => number {
  let state = (Math.imul(seed, 0x9e3779b9) ^ 0x6a09e667) | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** The input words of a kernel: every special pattern comes, and neighbours of one another. */
export function inputsOf(seed: number): BigUint64Array {
  const draw = createDraw(seed ^ 0x5bd1e995);
  const specials = [
    ...[0n, 1n, 0x7f800000n, 0xff800000n, 0x7fc00000n, 0x80000000n, 0x00000001n, 0x7f7fffffn],
    ...[0x3f800000n, 0xbf800000n, 0x4f000000n, 0x7ff0000000000000n, 0x7ff8000000000000n],
    ...[0x3ff0000000000000n, 0x8000000000000000n, 0x000fffffffffffffn, 0xffffffffffffffffn],
    ...[0x7c00n, 0x3c00n, 0x7e00n, 0x0001n, 0x7f80n, 0x3f80n, 32n, 31n, 63n, 64n, 0x7fffffffn],
  ];
  return BigUint64Array.from({ length: 32 * inputWords }, () => {
    const kind = draw(8);
    if (kind < 3) return specials[draw(specials.length)];
    if (kind === 3) return BigInt(draw(100));
    const low = BigInt(draw(2 ** 16)) * 65536n + BigInt(draw(2 ** 16));
    if (kind < 6) return (0x3f000000n + (low & 0x01ffffffn)) * (kind === 4 ? 1n : 0x1_0000_0001n);
    return (low << 32n) | (BigInt(draw(2 ** 16)) * 65536n + BigInt(draw(2 ** 16)));
  });
}

/**
 * Instructions of a warp as templates: D, S and T stand for registers of 32 bits, P and Q for predicates. What is the same in all lanes
 * is made different, since ptxas (13.0) takes a field of it wrongly.
 */
const warpTemplates = [
  'shfl.sync.bfly.b32 D|P, S, K, 31, -1;',
  'shfl.sync.idx.b32 D|P, S, T, 31, -1;',
  'shfl.sync.up.b32 D|P, S, K, 0, -1;',
  'shfl.sync.down.b32 D|P, S, K, 7199, -1;',
  'vote.sync.ballot.b32 D, Q, -1; xor.b32 D, D, %r0;',
  'vote.sync.any.pred P, Q, -1;',
  'vote.sync.all.pred P, Q, -1;',
  'match.any.sync.b32 D, S, -1;',
  'redux.sync.add.s32 D, S, -1; xor.b32 D, D, %r0;',
  'redux.sync.max.u32 D, S, -1; xor.b32 D, D, %r0;',
  'redux.sync.xor.b32 D, S, -1; xor.b32 D, D, %r0;',
];

/** The rows of each opcode. */
function byOpcode(rows: readonly LaneInstruction[]): readonly (readonly LaneInstruction[])[] {
  const forms = new Map<string, LaneInstruction[]>();
  for (const row of rows) {
    const [opcode] = row.name.split('.');
    const ofOpcode = forms.get(opcode);
    if (ofOpcode === undefined) forms.set(opcode, [row]);
    else ofOpcode.push(row);
  }
  return [...forms.values()];
}

function isClass(width: RegisterWidth): width is Class {
  return width !== 128;
}

/**
 * The entry `k<seed>(in, out)` of one warp: lane instructions of these rows on few registers, some under guards, branches
 * and loops that lanes take differently, and instructions of the whole warp where lanes have met again.
 */
export function randomKernel(seed: number, rows: readonly LaneInstruction[]): string {
  const draw = createDraw(seed);
  // Every opcode comes as often, however many forms it has.
  const forms = byOpcode(rows.filter(isDrawn));
  const register = (width: Class) => `${prefixes[width]}${20 + draw(perClass)}`;
  let labels = 0;

  function lane(isConditional: boolean): readonly string[] {
    for (;;) {
      const ofOpcode = forms[draw(forms.length)];
      const row = ofOpcode[draw(ofOpcode.length)];
      const isFragile = isWrongUnderGuards(row);
      if (isFragile && isConditional) continue;
      if (![...row.destinations, ...row.sources].every(isClass)) continue;
      const to = row.destinations.map((width) => register(width as Class));
      const from = row.sources.map((width, i) =>
        row.name.startsWith('lop3') && i === 3 ? String(draw(256)) : register(width as Class),
      );
      // Two destinations have to be different registers; an instruction on one number twice may be another one.
      if (new Set(to).size < to.length || new Set(from).size < from.length) continue;
      const { before, sources, after } = withoutChoices(row, to, from);
      const text = statement(row, to, sources);
      if (text === null) continue;
      const guard =
        !isFragile && draw(5) === 0 ? `@${draw(2) === 0 ? '' : '!'}${register('pred')} ` : '';
      return [...before, `${guard}${text}`, ...after].map((line) => `  ${line}`);
    }
  }

  function straight(most: number, isConditional: boolean): string[] {
    return Array.from({ length: 1 + draw(most) }, () => lane(isConditional)).flat();
  }

  function part(depth: number): string[] {
    const kind = draw(10);
    const label = `L${labels++}`;
    if (depth < 2 && kind === 0) {
      const predicate = register('pred');
      return [
        `  @${predicate} bra ${label}_else;`,
        ...part(depth + 1),
        `  bra ${label}_end;`,
        `${label}_else:`,
        ...part(depth + 1),
        `${label}_end:`,
      ];
    }
    if (depth < 2 && kind === 1) {
      const counter = `%c${depth}`;
      return [
        `  and.b32 ${counter}, ${register(32)}, 3;`,
        `${label}_loop:`,
        ...part(depth + 1),
        `  sub.u32 ${counter}, ${counter}, 1;`,
        `  setp.gt.s32 %p${depth}, ${counter}, 0;`,
        `  @%p${depth} bra ${label}_loop;`,
      ];
    }
    if (depth === 0 && kind < 5) {
      const template = warpTemplates[draw(warpTemplates.length)];
      return [
        `  ${template
          .replaceAll('D', register(32))
          .replace('P', register('pred'))
          .replace('S', register(32))
          .replace('T', register(32))
          .replace('Q', register('pred'))
          .replace('K', String(draw(32)))}`,
      ];
    }
    return straight(8, depth > 0);
  }

  const body = Array.from({ length: 3 + draw(6) }, () => part(0)).flat();
  const load: string[] = [];
  for (let i = 0; i < inputWords; i++) {
    const at = `%d${20 + (i % perClass)}`;
    load.push(`  ld.global.u64 ${at}, [%d1+${i * 8}];`);
    if (i < perClass)
      load.push(`  cvt.u32.u64 %r${20 + i}, ${at};`, `  setp.lt.s32 %p${20 + i}, %r${20 + i}, 64;`);
    else load.push(`  cvt.u16.u64 %h${20 + i - perClass}, ${at};`);
  }
  const store: string[] = [];
  for (let i = 0; i < perClass; i++) {
    store.push(`  selp.b64 %d2, 1, 0, %p${20 + i};`, `  st.global.u64 [%d3+${i * 8}], %d2;`);
    store.push(
      `  cvt.u64.u16 %d2, %h${20 + i};`,
      `  st.global.u64 [%d3+${(perClass + i) * 8}], %d2;`,
    );
    store.push(
      `  cvt.u64.u32 %d2, %r${20 + i};`,
      `  st.global.u64 [%d3+${(2 * perClass + i) * 8}], %d2;`,
    );
    store.push(`  st.global.u64 [%d3+${(3 * perClass + i) * 8}], %d${20 + i};`);
  }
  return `.visible .entry k${seed}(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<30>; .reg .b16 %h<30>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .b32 %c<2>;
  mov.u32 %r0, %tid.x;
  ld.param.u64 %d1, [in]; ld.param.u64 %d3, [out];
  mul.wide.u32 %d0, %r0, ${inputWords * 8}; add.u64 %d1, %d1, %d0;
  mul.wide.u32 %d0, %r0, ${resultWords * 8}; add.u64 %d3, %d3, %d0;
${load.join('\n')}
${body.join('\n')}
${store.join('\n')}
  ret;
}
`;
}

/** A module of the kernels of these seeds. */
export function randomModule(seeds: readonly number[], rows: readonly LaneInstruction[]): string {
  const head = '.version 9.0\n.target sm_90a\n.address_size 64\n';
  return head + seeds.map((seed) => randomKernel(seed, rows)).join('');
}

/** One word for what a kernel wrote: a difference in any of its bits changes it, but for one chance in 2^32. */
export function markOf(results: BigUint64Array): number {
  const words = new Uint32Array(results.buffer, results.byteOffset, 2 * results.length);
  let mark = 0x811c9dc5;
  for (const word of words) {
    mark = Math.imul(mark ^ word, 0x01000193);
    mark = (mark ^ (mark >>> 15)) >>> 0;
  }
  return mark;
}
