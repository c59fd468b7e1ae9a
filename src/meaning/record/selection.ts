import type { LaneOperation } from '../../ptx/program/index.js';
import type { TracedOperation } from '../../ptx/run/index.js';
import { placeInSlot, valueBytes } from '../trace/index.js';
import { laneValueOf } from './lane-values.js';
import { type Recording, siteOf } from './recording.js';

const [warpLanes, planes, wordBytes] = [32, 4, 4];

/** Follows `selp` and `slct`: the last operand, which has decided before or decides now, says whose bytes are copied. */
export function followSelection(
  { file, losses }: Recording,
  operation: LaneOperation,
  run: TracedOperation,
): TracedOperation {
  const { instruction, sources, destinations } = operation;
  const [a, b, condition] = sources;
  const [destination] = destinations;
  if (destination === null) return run;
  const count = Math.max(valueBytes(destination) / wordBytes, 1);
  const places = [a, b].map((source) =>
    Array.from({ length: count }, (_, i) =>
      'offset' in source && i < Math.max(valueBytes(source) / wordBytes, 1)
        ? placeInSlot(source, wordBytes * i)
        : null,
    ),
  );
  const targets = Array.from({ length: count }, (_, i) => placeInSlot(destination, wordBytes * i));
  const [one, two] = instruction.sources[0] === 64 ? [1n, 2n] : [1, 2];
  const isDeciding = 'offset' in condition && condition.width !== 'pred';
  const slots = [a, b, destination].flatMap((slot) => ('offset' in slot ? [slot] : []));
  const chosen = new Uint8Array(warpLanes);
  const taken = new Uint32Array(count * planes);
  const choose = (registers: number, lanes: number): void => {
    for (let lane = 0; lane < warpLanes; lane++) {
      if (((lanes >>> lane) & 1) === 0) continue;
      const decisive = laneValueOf(file, condition, instruction.sources[2], registers, lane);
      const isFirst = isDeciding
        ? instruction.evaluate(one, two, decisive) === one
        : decisive !== 0;
      chosen[lane] = isFirst ? 0 : 1;
    }
  };
  /** Copies the tags of a lane's operand to the result, which may lie in one of the operands. */
  const copy = (registers: number, lane: number): void => {
    const from = places[chosen[lane]];
    for (let plane = 0; plane < planes; plane++) {
      const start = registers + (plane + 1) * file.planeBytes;
      for (let i = 0; i < count; i++) {
        const place = from[i];
        taken[plane * count + i] =
          place === null ? 0 : file.words[(start + place.first + place.stride * lane) >>> 2];
      }
      for (let i = 0; i < count; i++) {
        const { first, stride } = targets[i];
        file.words[(start + first + stride * lane) >>> 2] = taken[plane * count + i];
      }
    }
  };
  return (registers, lanes) => {
    const isTagged = slots.some((slot) => file.isTagged(registers, slot));
    if (isDeciding && file.isTagged(registers, condition)) losses.decide(siteOf(operation));
    if (isTagged) choose(registers, lanes);
    run(registers, lanes);
    if (isTagged)
      for (let lane = 0; lane < warpLanes; lane++)
        if (((lanes >>> lane) & 1) === 1) copy(registers, lane);
  };
}
