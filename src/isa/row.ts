import { lazily } from '../reuse.js';
import type {
  Evidence,
  LaneUnit,
  LaneValue,
  Meaning,
  RegisterWidth,
  Variant,
} from './instruction.js';
import { isPacked, registerOfType } from './registers.js';
import { type Choice, type Chosen, choicesOf, parseSyntax, type Syntax } from './syntax.js';
import type { Emit } from './vectors/index.js';

/**
 * The function of a variant on values of registers. A function of registers of up to 32 bits may say `number` for
 * `LaneValue`.
 */
type Evaluate = (...sources: never[]) => LaneValue | readonly LaneValue[];

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
  /** The types of operands that have others than the name says, by the types of the name. */
  readonly operands?: Of<Line, Readonly<Record<string, string>>>;
  /** Whether the manual leaves a choice of modifiers out. */
  readonly except?: (modifiers: Chosen<Line>) => boolean;
  /** The definition, in a form of one result or, for `p[|q]`, of two; see `LaneInstruction.evaluate`. */
  readonly evaluate: (modifiers: Chosen<Line>, results: number) => Evaluate;
  /** The same on four lanes, in SIMD instructions of WebAssembly, where it has been written. */
  readonly emit?: (modifiers: Chosen<Line>) => Emit | null;
  /** Whether the machine has it among its instructions on words, which the roofline counts; default not. */
  readonly isOfMachine?: Of<Line, boolean>;
  readonly meaning: Of<Line, Meaning>;
  readonly unit: LaneUnit;
  /** Default 2 for packed types, else 1. */
  readonly laneOperations?: 1 | 2;
  readonly evidence: Of<Line, Evidence>;
  /** The section of the manual. */
  readonly section: string;
  /** What else it rests on. */
  readonly also?: string;
}

/** A row of the table of instructions. */
export interface Row {
  readonly syntax: string;
  readonly opcode: string;
  /** What may stand for a modifier of the syntax. */
  readonly alternatives: Readonly<Record<string, readonly string[]>>;
  /** The section of the manual. */
  readonly section: string;
  /** What else it rests on; empty where there is nothing. */
  readonly also: string;
  /** Whether some of its variants are instructions of the machine. */
  readonly isOfMachine: boolean;
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

/** The registers of a variant's operands: of the destinations in each form, and of the sources. */
interface Registers {
  readonly destinations: readonly (readonly RegisterWidth[])[];
  readonly sources: readonly RegisterWidth[];
  readonly isPacked: boolean;
}

/**
 * @param types those of the name, in order
 * @param given types of operands that the name does not say
 */
function registersOf(
  { destinations, sources, predicates }: Syntax,
  types: readonly string[],
  given: Readonly<Record<string, string>>,
): Registers {
  const widthOf = (name: string): RegisterWidth => {
    if (name === 'p' || name === 'q' || predicates.includes(name)) return 'pred';
    const type = given[name] ?? (name === 'd' ? types[0] : types[types.length - 1]);
    const width = registerOfType(type);
    if (width === null) throw new Error(`${type} of ${name} is no type`);
    return width;
  };
  return {
    destinations: destinations.map((names) => names.map(widthOf)),
    sources: sources.map(widthOf),
    isPacked: types.some(isPacked),
  };
}

/** Finds the registers of variants, once for all that have the same types. */
function registerFinder(
  syntax: Syntax,
  { operands = {} }: RowFacts<string>,
): (modifiers: Choice['modifiers']) => Registers {
  const known = new Map<string, Registers>();
  const areTypes = new Map<string, boolean>();
  const isType = (modifier: string): boolean => {
    let answer = areTypes.get(modifier);
    if (answer === undefined) areTypes.set(modifier, (answer = registerOfType(modifier) !== null));
    return answer;
  };
  return (modifiers) => {
    const types = syntax.parts.map(({ key }) => modifiers[key]).filter(isType);
    const key = types.join();
    let registers = known.get(key);
    if (registers === undefined)
      known.set(key, (registers = registersOf(syntax, types, factOf(operands, modifiers))));
    return registers;
  };
}

function variantsOf(facts: RowFacts<string>): Variant[] {
  const syntax = parseSyntax(facts.syntax);
  const findRegisters = registerFinder(syntax, facts);
  const source = `PTX ISA, ${facts.section}: ${syntax.opcode}${facts.also === undefined ? '' : `; ${facts.also}`}`;
  const compared = source + capture;
  return choicesOf(syntax, facts.alternatives ?? {}).flatMap(({ name, modifiers }) => {
    const chosen = modifiers as Chosen<string>;
    if (facts.except?.(chosen) === true) return [];
    const { destinations, sources, isPacked: isPair } = findRegisters(modifiers);
    const evidence = factOf(facts.evidence, modifiers);
    const emit = facts.emit?.(chosen) ?? null;
    return destinations.map((widths, form): Variant => {
      const evaluate = facts.evaluate(chosen, widths.length) as Variant['evaluate'];
      return {
        name,
        destinations: widths,
        sources,
        evaluate,
        emit,
        meaning: factOf(facts.meaning, modifiers),
        unit: facts.unit,
        laneOperations: facts.laneOperations ?? (isPair ? 2 : 1),
        evidence,
        source: evidence === 'silicon' ? compared : source,
        isOfMachine: form === 0 && factOf(facts.isOfMachine ?? false, modifiers),
        element: null,
      };
    });
  });
}

/** A row of the table, whose variants are made on first use. */
export function row<const Line extends string>(facts: RowFacts<Line>): Row {
  const variants = lazily(() => variantsOf(facts as unknown as RowFacts<string>));
  const { syntax, alternatives = {}, section, also = '' } = facts;
  const { opcode } = parseSyntax(syntax);
  const isOfMachine = (facts.isOfMachine ?? false) !== false;
  return { syntax, opcode, alternatives, section, also, isOfMachine, variants };
}
