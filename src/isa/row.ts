import { lazily } from '../lazily.js';
import type {
  Evidence,
  LaneUnit,
  LaneValue,
  Meaning,
  RegisterWidth,
  Variant,
} from './instruction.js';
import { isPacked, registerOfType } from './registers.js';
import type { RunLoop } from './runs/run.js';
import { type Choice, type Chosen, choicesOf, parseSyntax, type Syntax } from './syntax.js';
import type { Emit } from './vectors/index.js';

/**
 * The function of a variant on values of registers. A function of registers of up to 32 bits may say `number` for
 * `LaneValue`.
 */
type Evaluate = (...sources: never[]) => LaneValue | readonly LaneValue[];

/** The same, of registers of up to 32 bits. */
type OnWords = (...sources: number[]) => number;

/** Facts that depend on the chosen modifiers, or do not. */
type Of<Line extends string, Fact> = Fact | ((modifiers: Chosen<Line>) => Fact);

/** A line of the PTX manual: everything that machine, PTX, compiler and documents know of an instruction. */
export interface RowFacts<Line extends string> {
  /**
   * As the manual writes it: `add{.rnd}{.ftz}{.sat}.f32 d, a, b`. `d` has the first type of the name, predicates are
   * `p`, `q` and `{!}c`, and other operands have the last type.
   */
  readonly syntax: Line;
  /** What may stand for a modifier, in the order of the manual: `{ rnd: ['.rn', '.rz', '.rm', '.rp'] }`. */
  readonly alternatives?: Readonly<Record<string, readonly string[]>>;
  /** The types of operands that have others than the name says. */
  readonly operands?: Of<Line, Readonly<Record<string, string>>>;
  /** Whether the manual leaves a choice of modifiers out. */
  readonly except?: (modifiers: Chosen<Line>) => boolean;
  /** The definition, in a form of one result or, for `p[|q]`, of two; see `LaneInstruction.evaluate`. */
  readonly evaluate: (modifiers: Chosen<Line>, results: number) => Evaluate;
  /** The same on four lanes, in SIMD instructions of WebAssembly, where it has been written. */
  readonly emit?: (modifiers: Chosen<Line>) => Emit | null;
  /** The loop over registers of many lanes, for what programs of the machine use; `evaluatingLoop` if none is faster. */
  readonly run?: (modifiers: Chosen<Line>, evaluate: OnWords) => RunLoop | null;
  readonly meaning: Of<Line, Meaning>;
  readonly unit: LaneUnit;
  /** Default 2 for packed types, else 1. */
  readonly laneOperations?: 1 | 2;
  readonly evidence: Of<Line, Evidence>;
  /** The section of the manual, and what else it rests on. */
  readonly source: Of<Line, string>;
}

/** A row of the table of instructions. */
export interface Row {
  readonly syntax: string;
  /** Its variants, made on first use. */
  readonly variants: () => readonly Variant[];
}

/** What the source of a variant with the evidence `silicon` ends with: the GPU whose results it has been compared with. */
export const capture = '; as on an H200 with driver 580.159.04';

function factOf<Fact>(fact: Of<string, Fact>, modifiers: Choice['modifiers']): Fact {
  return typeof fact === 'function'
    ? (fact as (modifiers: Choice['modifiers']) => Fact)(modifiers)
    : fact;
}

/** The registers of operands. */
function widthsOf(
  { predicates }: Syntax,
  names: readonly string[],
  types: readonly string[],
  given: Readonly<Record<string, string>>,
): RegisterWidth[] {
  return names.map((name) => {
    if (name === 'p' || name === 'q' || predicates.includes(name)) return 'pred';
    const type = given[name] ?? (name === 'd' ? types[0] : types[types.length - 1]);
    const width = registerOfType(type);
    if (width === null) throw new Error(`${type} of ${name} is no type`);
    return width;
  });
}

function variantsOf(facts: RowFacts<string>): Variant[] {
  const syntax = parseSyntax(facts.syntax);
  return choicesOf(syntax, facts.alternatives ?? {}).flatMap(({ name, modifiers }) => {
    const chosen = modifiers as Chosen<string>;
    if (facts.except?.(chosen) === true) return [];
    const types = syntax.parts
      .map(({ key }) => modifiers[key])
      .filter((modifier) => registerOfType(modifier) !== null);
    const given = factOf(facts.operands ?? {}, modifiers);
    const evidence = factOf(facts.evidence, modifiers);
    const source = factOf(facts.source, modifiers);
    const emit = facts.emit?.(chosen) ?? null;
    return syntax.destinations.map((destinations, form): Variant => {
      const evaluate = facts.evaluate(chosen, destinations.length) as Variant['evaluate'];
      return {
        name,
        destinations: widthsOf(syntax, destinations, types, given),
        sources: widthsOf(syntax, syntax.sources, types, given),
        evaluate,
        emit,
        meaning: factOf(facts.meaning, modifiers),
        unit: facts.unit,
        laneOperations: facts.laneOperations ?? (types.some(isPacked) ? 2 : 1),
        evidence,
        source: evidence === 'silicon' ? source + capture : source,
        run: form === 0 ? (facts.run?.(chosen, evaluate as OnWords) ?? null) : null,
        element: null,
      };
    });
  });
}

/** A row of the table, whose variants are made on first use. */
export function row<const Line extends string>(facts: RowFacts<Line>): Row {
  const variants = lazily(() => variantsOf(facts as unknown as RowFacts<string>));
  return { syntax: facts.syntax, variants };
}
