import { type Row, row } from '../row.js';
import { onWords } from '../vectors/index.js';
import { highWords, i16x8, i32x4, lowWords } from '../webassembly/index.js';

/** The sum of products of elements of words, each read as its type's integer; `first` is the first byte of b. */
function dotProduct(aType: string, bType: string, aBits: 8 | 16, first: number) {
  const element = (word: number, bits: 8 | 16, i: number, type: string): number => {
    const above = word << (32 - bits * (i + 1));
    return type === 's32' ? above >> (32 - bits) : above >>> (32 - bits);
  };
  return (a: number, b: number, c: number): number => {
    let sum = 0;
    for (let i = 0; i < 32 / aBits; i++)
      sum += element(a, aBits, i, aType) * element(b, 8, first + i, bType);
    return (sum + c) >>> 0;
  };
}

const extensions = {
  s32: [i16x8.extendLowI8x16S, i16x8.extendHighI8x16S],
  u32: [i16x8.extendLowI8x16U, i16x8.extendHighI8x16U],
} as const;

const common = { meaning: 'is', unit: 'alu', laneOperations: 2, evidence: 'silicon' } as const;
/** Sums of products of bytes, and of 16 bits and bytes, added to an integer; they wrap around. */
export const dotProductRows: readonly Row[] = [
  row({
    ...common,
    syntax: 'dp4a.atype.btype d, a, b, c',
    alternatives: { atype: ['.u32', '.s32'], btype: ['.u32', '.s32'] },
    evaluate: ({ atype, btype }) => dotProduct(atype, btype, 8, 0),
    emit: ({ atype, btype }) => {
      const [ofA, ofB] = [atype, btype].map((type) => extensions[type as keyof typeof extensions]);
      return onWords((body, a, b, c) => {
        const [low, high] = [0, 1].map((half) =>
          body.keep(i32x4.dotI16x8S(ofA[half](a), ofB[half](b))),
        );
        return i32x4.add(c, i32x4.add(lowWords(low, high), highWords(low, high)));
      });
    },
    section: 'Integer Arithmetic Instructions',
  }),
  row({
    ...common,
    syntax: 'dp2a.mode.atype.btype d, a, b, c',
    alternatives: { mode: ['.lo', '.hi'], atype: ['.u32', '.s32'], btype: ['.u32', '.s32'] },
    evaluate: ({ mode, atype, btype }) => dotProduct(atype, btype, 16, mode === 'lo' ? 0 : 2),
    section: 'Integer Arithmetic Instructions',
  }),
];
