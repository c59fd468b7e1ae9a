import { warpLanes } from '../../../machine/index.js';

/** The layout of the metadata of a sparse A in the words of a warp's lanes. */
export interface MetadataLayout {
  /** Number of elements of a row of A of which half are stored: 2 of 4, or 1 of 2 for tf32. */
  readonly chunk: 4 | 2;
  /** Number of lanes among each four that hold metadata. */
  readonly lanes: 1 | 2 | 4;
  /** Number of rows of the same columns in a word: the row of the lanes, and the one 8 below in its upper half. */
  readonly rowsPerWord: 1 | 2;
}

/** Rows of A; bits of the metadata of a chunk. */
const [rows, chunkBits] = [16, 4];

/**
 * The layout for elements with this number of bits and this K, which is that of A before its compression. Sources: PTX ISA 9.2,
 * "Sparse matrix storage" (section 9.7.14.6.1: granularity and the lanes that contribute); the rows and columns of a lane's word
 * are shown in figures there, and follow from CUTLASS' `reorder_meta`, whose result `ldmatrix` loads.
 */
export function metadataLayout(elementBits: 8 | 16 | 32, k: number): MetadataLayout {
  const chunk = elementBits === 32 ? 2 : 4;
  const lanes = (((k / chunk) * chunkBits * rows) / (8 * 32)) as 1 | 2 | 4;
  return { chunk, lanes, rowsPerWord: elementBits === 8 ? 1 : 2 };
}

/** Number of values of a selector in a layout, from 0 on. */
export function selectorsOf({ lanes }: MetadataLayout): number {
  return 4 / lanes;
}

/** Indices in ascending order, as `sp::ordered_metadata` requires; and all that name two places. */
const ordered: readonly number[] = [0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110];
const ofTwoPlaces = Array.from({ length: 16 }, (_, bits) => bits).filter(
  (bits) => (bits & 3) !== bits >> 2,
);
/** Metadata that names one place of two. */
const ofOnePlace: readonly number[] = [0b0100, 0b1110];

/**
 * The columns of A's stored elements, [row][k / 2], or the fault of the metadata.
 *
 * @param words words of all lanes
 */
export function columnsOfMetadata(
  { chunk, lanes, rowsPerWord }: MetadataLayout,
  k: number,
  words: ArrayLike<number>,
  { selector, isOrdered }: { readonly selector: number; readonly isOrdered: boolean },
): Int32Array | string {
  const columns = new Int32Array((rows * k) / 2);
  const stored = chunk / 2;
  const chunksPerWord = 32 / chunkBits / rowsPerWord;
  const legal = chunk === 2 ? ofOnePlace : isOrdered ? ordered : ofTwoPlaces;
  for (let row = 0; row < rows; row++)
    for (let at = 0; at < k / chunk; at++) {
      const [segment, place] = [Math.floor(at / chunksPerWord), at % chunksPerWord];
      const isLower = row >= 8 ? 1 : 0;
      const lane = rowsPerWord === 2 ? segment : 2 * segment + isLower;
      const holder = 4 * (row % 8) + selector * lanes + lane;
      const word = words[holder % warpLanes];
      const bit = chunkBits * place + (rowsPerWord === 2 ? 16 * isLower : 0);
      const indices = (word >>> bit) & 15;
      if (!legal.includes(indices))
        return `lane ${holder} has the metadata 0b${indices.toString(2).padStart(4, '0')} for row ${row}, columns ${at * chunk} to ${at * chunk + chunk - 1}; ${legal.map((one) => `0b${one.toString(2).padStart(4, '0')}`).join(', ')} are legal`;
      const first = (row * k) / 2 + at * stored;
      if (chunk === 2) columns[first] = 2 * at + ((indices & 3) >> 1);
      else {
        columns[first] = 4 * at + (indices & 3);
        columns[first + 1] = 4 * at + (indices >> 2);
      }
    }
  return columns;
}
