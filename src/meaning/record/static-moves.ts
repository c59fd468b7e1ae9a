import type { LaneOperation } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import type { ByteMap } from '../rules/index.js';
import {
  byteSlots,
  type LanePlace,
  placeInSlot,
  type RegisterFile,
  valueBytes,
} from '../trace/index.js';

const [warpLanes, planes, wordBytes] = [32, 4, 4];

/** A byte or a word of a result, and where it comes from; null where it comes from nowhere. */
interface Move {
  readonly to: LanePlace;
  readonly from: LanePlace | null;
}

/** The moves of all bytes of the results. */
function byteMoves({ sources, destinations }: LaneOperation, map: ByteMap): Move[] {
  return byteSlots(destinations).flatMap(({ operand, slot }) =>
    Array.from({ length: Math.max(valueBytes(slot), wordBytes) }, (_, byte): Move => {
      const origin = byte < map[operand].length ? map[operand][byte] : -1;
      const source = origin < 0 ? undefined : sources[origin >> 4];
      const isRegister = source !== undefined && 'offset' in source;
      return {
        to: placeInSlot(slot, byte),
        from: isRegister ? placeInSlot(source, origin & 15) : null,
      };
    }),
  );
}

/** The moves of whole words that are the same as those of their bytes; null where some move is none of whole words. */
function wordMoves(bytes: readonly Move[]): readonly Move[] | null {
  const words: Move[] = [];
  for (let i = 0; i < bytes.length; i += wordBytes) {
    const [{ to, from }] = [bytes[i]];
    const isWord = bytes
      .slice(i, i + wordBytes)
      .every((move, byte) =>
        from === null
          ? move.from === null
          : move.from !== null &&
            from.first % wordBytes === 0 &&
            move.from.first === from.first + byte,
      );
    if (!isWord) return null;
    words.push({ to, from });
  }
  return words;
}

/** Follows an operation that moves the same bytes, whatever its registers hold. */
export function followStaticMoves(
  file: RegisterFile,
  operation: LaneOperation,
  run: TracedOperation,
  map: ByteMap,
): TracedOperation {
  const bytes = byteMoves(operation, map);
  const words = wordMoves(bytes);
  const moves = words ?? bytes;
  const memory = words === null ? file.bytes : file.words;
  const unit = words === null ? 1 : wordBytes;
  const [read, written] = [operation.sources, operation.destinations].map((operands) =>
    byteSlots(operands).map(({ slot }) => slot),
  );
  const taken = new Uint32Array(moves.length * warpLanes);
  return (registers, lanes) => {
    run(registers, lanes);
    const isTagged = [...read, ...written].some((slot) => file.isTagged(registers, slot));
    if (!isTagged) return;
    for (let plane = 1; plane <= planes; plane++) {
      const start = (registers + plane * file.planeBytes) / unit;
      moves.forEach(({ from }, i) => {
        if (from === null) return;
        const [first, step] = [start + from.first / unit, from.stride / unit];
        for (let lane = 0; lane < warpLanes; lane++)
          taken[i * warpLanes + lane] = memory[first + step * lane];
      });
      moves.forEach(({ to }, i) => {
        const [first, step] = [start + to.first / unit, to.stride / unit];
        for (let lane = 0; lane < warpLanes; lane++)
          if (((lanes >>> lane) & 1) === 1)
            memory[first + step * lane] = taken[i * warpLanes + lane];
      });
    }
  };
}
