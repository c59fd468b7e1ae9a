/** A part of an instruction's name after the opcode: `.f32`, `{.ftz}`, `.rnd`. */
interface NamePart {
  /** What it is called in the syntax, without its dot. */
  readonly key: string;
  readonly isOptional: boolean;
}

/** A line of syntax as the PTX manual writes it: `setp.CmpOp{.ftz}.f32 p[|q], a, b`. */
export interface Syntax {
  readonly opcode: string;
  readonly parts: readonly NamePart[];
  /** The destinations, in each form that the line has: one, or two for `p[|q]`. */
  readonly destinations: readonly (readonly string[])[];
  readonly sources: readonly string[];
  /** Sources that are predicates, which the manual writes as `{!}c`. */
  readonly predicates: readonly string[];
}

type PlainKeys<Text extends string> = Text extends `${infer First}.${infer Rest}`
  ? First | PlainKeys<Rest>
  : Text;

type Keys<Text extends string> = Text extends `${infer Before}{.${infer Key}}${infer After}`
  ? PlainKeys<Before> | Key | Keys<After>
  : PlainKeys<Text>;

/**
 * The modifiers of a variant, by what the syntax calls them: without its dot the alternative that was chosen, and an
 * empty string where an optional one was left out.
 */
export type Chosen<Line extends string> = Line extends `${infer Name} ${string}`
  ? Readonly<Record<Keys<Name>, string>>
  : never;

const namePart = /\{\.([\w:.]+)\}|\.([\w:]+)/g;

/** Reads a line of syntax. */
export function parseSyntax(line: string): Syntax {
  const [name, ...rest] = line.split(' ');
  const opcode = /^\w+/.exec(name)?.[0] ?? '';
  const parts = [...name.matchAll(namePart)].map(([, optional, required]) => ({
    key: optional ?? required,
    isOptional: optional !== undefined,
  }));
  const [first, ...sources] = rest.join(' ').split(', ');
  const [destination, other] = first.split('[|');
  const both = other === undefined ? [] : [[destination, other.replace(']', '')]];
  return {
    opcode,
    parts,
    destinations: [
      first.includes('|') && both.length === 0 ? first.split('|') : [destination],
      ...both,
    ],
    sources: sources.map((source) => source.replace('{!}', '')),
    predicates: sources
      .filter((source) => source.startsWith('{!}'))
      .map((source) => source.slice('{!}'.length)),
  };
}

/** Modifiers by their keys, and the name that they make. */
export interface Choice {
  readonly name: string;
  readonly modifiers: Readonly<Record<string, string>>;
}

/**
 * Every choice of modifiers that a line allows, the last modifier changing first.
 *
 * @param alternatives what may stand for a modifier, with the dots: `{ rnd: ['.rn', '.rz'] }`; others stand for themselves
 */
export function choicesOf(
  { opcode, parts }: Syntax,
  alternatives: Readonly<Record<string, readonly string[]>>,
): readonly Choice[] {
  const spellings = parts.map(({ key, isOptional }) => [
    ...(isOptional ? [''] : []),
    ...(alternatives[key] ?? [`.${key}`]),
  ]);
  const count = spellings.reduce((product, { length }) => product * length, 1);
  return Array.from({ length: count }, (_, number) => {
    const modifiers: Record<string, string> = {};
    let [name, rest, block] = [opcode, number, count];
    parts.forEach(({ key }, i) => {
      block /= spellings[i].length;
      const spelling = spellings[i][Math.floor(rest / block)];
      rest %= block;
      name += spelling;
      modifiers[key] = spelling.slice(1);
    });
    return { name, modifiers };
  });
}
