/** A place in the PTX text; both numbers count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** State spaces that a declaration names (PTX ISA, "State Spaces"). */
export type StateSpace = 'reg' | 'const' | 'global' | 'local' | 'param' | 'shared';

/** Fundamental types, and predicates (PTX ISA, "Types"). A packed type (`.f16x2`, `.b128`) is one too. */
export type ScalarType =
  | 'pred'
  | `b${8 | 16 | 32 | 64 | 128}`
  | `${'u' | 's'}${8 | 16 | 32 | 64}`
  | `f${16 | 32 | 64}`
  | 'f16x2'
  | 'bf16'
  | 'bf16x2'
  | 'texref'
  | 'samplerref'
  | 'surfref';

/** The value of a variable before a kernel starts: numbers, and names of variables or functions. */
export type Initialiser =
  | { readonly kind: 'bits'; readonly bits: bigint }
  /** The address of a variable; `isGeneric` for `generic(name)`, `mask` for `0xff(name)`. */
  | {
      readonly kind: 'address';
      readonly name: string;
      readonly offset: bigint;
      readonly isGeneric: boolean;
      readonly mask: bigint | null;
    }
  | { readonly kind: 'list'; readonly elements: readonly Initialiser[] };

/** A variable or a parameter. */
export interface VariableDeclaration {
  readonly kind: 'variable';
  readonly name: string;
  readonly space: StateSpace;
  readonly type: ScalarType;
  /** Elements of a `.v2` or `.v4` type; 1 for a scalar. */
  readonly vector: 1 | 2 | 4 | 8;
  /** Bytes of `.align`; null where it is missing. */
  readonly alignment: number | null;
  /**
   * Number of elements of each dimension of an array; null for `[]`. No dimensions for a variable that is not an array.
   */
  readonly dimensions: readonly (number | null)[];
  /** Number of registers that `%r<10>` declares: `%r0` to `%r9`; null for one variable of that name. */
  readonly count: number | null;
  readonly initialiser: Initialiser | null;
  readonly linkage: 'extern' | 'visible' | 'weak' | 'common' | null;
  /** The target of a parameter, as `.ptr` states it. */
  readonly pointer: { readonly space: StateSpace | null; readonly alignment: number | null } | null;
  readonly place: Place;
}

/** An operand of an instruction, as written: names are not resolved. */
export type Operand =
  /** A register, variable, label, function or special register: `%r1`, `smem`, `$L__BB0_1`, `%tid.x`. */
  | { readonly kind: 'name'; readonly name: string; readonly place: Place }
  /** `name+4` without brackets: an address as a value. */
  | {
      readonly kind: 'sum';
      readonly name: string;
      readonly offset: bigint;
      readonly place: Place;
    }
  | { readonly kind: 'integer'; readonly value: bigint; readonly place: Place }
  /** A floating-point constant by its bits: `0f3F800000`, `0d…`, `1.5` (which is an f64). */
  | {
      readonly kind: 'float';
      readonly format: 'f32' | 'f64';
      readonly bits: bigint;
      readonly place: Place;
    }
  /** `[base + offset]`; `coordinates` of a tensor copy `[map, {x, y}]`, with `{im2col offsets}` after them. */
  | {
      readonly kind: 'address';
      /** A register or variable; null for an absolute address. */
      readonly base: string | null;
      readonly offset: bigint;
      readonly coordinates: readonly (readonly Operand[])[];
      readonly place: Place;
    }
  /** `{a, b}` of a vector instruction, or of a `mov` that packs or unpacks. */
  | { readonly kind: 'vector'; readonly elements: readonly Operand[]; readonly place: Place }
  /** `(a, b)` of a call. */
  | { readonly kind: 'list'; readonly elements: readonly Operand[]; readonly place: Place }
  /** `p|q`. */
  | {
      readonly kind: 'pair';
      readonly first: Operand;
      readonly second: Operand;
      readonly place: Place;
    }
  /** `!p`. */
  | { readonly kind: 'negated'; readonly operand: Operand; readonly place: Place }
  /** `_`. */
  | { readonly kind: 'sink'; readonly place: Place };

/** `@p` or `@!p` before an instruction. */
export interface Guard {
  readonly predicate: string;
  readonly isNegated: boolean;
}

/** An instruction as written. */
export interface PtxInstruction {
  readonly kind: 'instruction';
  readonly guard: Guard | null;
  /** The part before the first dot: `mul`, `tcgen05`, `bar`. */
  readonly opcode: string;
  /** The parts after the first dot, without their dots, with `::`: `['mma', 'cta_group::1', 'kind::f16']`. */
  readonly modifiers: readonly string[];
  readonly operands: readonly Operand[];
  readonly place: Place;
}

/** A place in the source that the compiler read; the file by its number in `.file`. */
export interface SourcePosition {
  readonly file: number;
  readonly line: number;
  readonly column: number;
}

/** A statement of a function. */
export type Statement =
  | PtxInstruction
  | VariableDeclaration
  | { readonly kind: 'label'; readonly name: string; readonly place: Place }
  /** `{ … }`: declarations and labels in it are local to it. */
  | {
      readonly kind: 'block';
      readonly statements: readonly Statement[];
      readonly place: Place;
    }
  /** `.loc file line column`: the statements up to the next `.loc` come from that place in the source. */
  | ({
      readonly kind: 'location';
      /** Place at which the function that it is in has been inlined; null where it has not. */
      readonly inlinedAt: SourcePosition | null;
      readonly place: Place;
    } & SourcePosition)
  /** `name: .branchtargets a, b;` of brx.idx. */
  | {
      readonly kind: 'branch-targets';
      readonly name: string;
      readonly labels: readonly string[];
      readonly place: Place;
    }
  /** `name: .callprototype …;` and `name: .calltargets …;` of an indirect call. */
  | {
      readonly kind: 'call-prototype';
      readonly name: string;
      readonly returns: readonly VariableDeclaration[];
      readonly parameters: readonly VariableDeclaration[];
      readonly place: Place;
    }
  | {
      readonly kind: 'call-targets';
      readonly name: string;
      readonly functions: readonly string[];
      readonly place: Place;
    };

/** A kernel (`.entry`) or a function (`.func`). */
export interface PtxFunction {
  readonly kind: 'entry' | 'func';
  readonly name: string;
  readonly linkage: VariableDeclaration['linkage'];
  readonly returns: readonly VariableDeclaration[];
  readonly parameters: readonly VariableDeclaration[];
  /** `.reqntid`, `.maxntid`, `.reqnctapercluster`, `.maxnreg`, …: the numbers by the name without its dot. */
  readonly directives: ReadonlyMap<string, readonly number[]>;
  /** Null for a declaration without a body. */
  readonly body: readonly Statement[] | null;
  readonly place: Place;
}

/** A file of PTX. */
export interface PtxModule {
  readonly version: { readonly major: number; readonly minor: number };
  /** Target as written: `sm_90a`. */
  readonly target: string;
  /** Further options of `.target`: `debug`, `texmode_independent`. */
  readonly targetOptions: readonly string[];
  readonly addressSize: 32 | 64;
  /** Variables of the module, in the order of the text. */
  readonly variables: readonly VariableDeclaration[];
  readonly functions: readonly PtxFunction[];
  /** `.alias`: the function that a name stands for. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Names of source files by the number that `.file` gives them. */
  readonly files: ReadonlyMap<number, string>;
}
