import { lazily } from '../../../reuse/index.js';
import { laneRows, type LaneInstruction, type RegisterWidth } from '../../../isa/index.js';
import { addressRows } from './addresses.js';

/** The form of an instruction's operands, in which rows that share a name differ. */
export interface OperandForm {
  /** The widths of the destinations' registers; `16` for a sink `_` of an instruction with at most one destination. */
  readonly destinations: readonly RegisterWidth[];
  /** Number of sources. */
  readonly sources: number;
}

function groupBy<Value>(values: readonly Value[], keyOfValue: (value: Value) => string) {
  const groups = new Map<string, Value[]>();
  for (const value of values) {
    const group = groups.get(keyOfValue(value));
    if (group === undefined) groups.set(keyOfValue(value), [value]);
    else group.push(value);
  }
  return groups;
}

/** For each opcode its instructions, made when the first of them is looked up, by their names. */
const table = lazily(() => {
  const rows = groupBy([...laneRows, ...addressRows], ({ opcode }) => opcode);
  return new Map(
    [...rows].map(([opcode, ofOpcode]) => {
      const byName = lazily(() =>
        groupBy(
          ofOpcode.flatMap(({ variants }): readonly LaneInstruction[] => variants()),
          ({ name }) => name,
        ),
      );
      return [opcode, byName] as const;
    }),
  );
});

function bitsOf(width: RegisterWidth): number {
  return width === 'pred' ? 1 : width;
}

/** Distance of a row from the form, in bits by which destinations are widened; infinite where it does not fit. */
function distance({ destinations, sources }: LaneInstruction, form: OperandForm): number {
  if (destinations.length !== form.destinations.length || sources.length !== form.sources)
    return Infinity;
  const widenings = destinations.map((width, i) => bitsOf(form.destinations[i]) - bitsOf(width));
  return widenings.some((widening) => widening < 0)
    ? Infinity
    : widenings.reduce((sum, widening) => sum + widening, 0);
}

/**
 * The instruction with this opcode and these modifiers, or null where there is none. A `mov` that packs two elements has the
 * modifier `pack2` after its type.
 *
 * @param form distinguishes instructions of one name: `setp` with one result or two, `max` of two or three numbers,
 * `cvt.s8.s32` to a register of 16 or of 32 bits; without it the first of the name is returned
 */
export function findLaneInstruction(
  opcode: string,
  modifiers: readonly string[],
  form?: OperandForm,
): LaneInstruction | null {
  const found =
    table()
      .get(opcode)?.()
      .get([opcode, ...modifiers].join('.')) ?? [];
  if (form === undefined) return found[0] ?? null;
  const fitting = found
    .map((instruction) => ({ instruction, distance: distance(instruction, form) }))
    .filter((candidate) => candidate.distance < Infinity)
    .sort((a, b) => a.distance - b.distance);
  return fitting[0]?.instruction ?? null;
}
