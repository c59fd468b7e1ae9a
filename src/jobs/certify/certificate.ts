import type { Coverage, OutputReach } from '../../meaning/certify/index.js';
import type { RecurrentFamily } from '../../problem/index.js';
import type { SourceLine } from '../../ptx/syntax/index.js';
import type { DocumentHead } from '../audit/index.js';
import type { RunVerdict } from '../launch/run-verdict.js';

/** A place of the program: an instruction of the PTX and, where the PTX says, the source that it was compiled from. */
export interface CertificatePlace {
  /** The number of its launch in a chain, from 1; null where there is one launch. */
  readonly launch: number | null;
  /** `line 120: fma.rn.f32`. */
  readonly site: string;
  readonly source: SourceLine | null;
}

/** A place with how often it did something. */
export interface CountedPlace extends CertificatePlace {
  readonly count: number;
}

/** The share of a place in the error of an output: signed, and all together 1. */
export interface RoundingShare extends CertificatePlace {
  readonly share: number;
}

/** What is known of the values of an output. */
export interface OutputCertificate {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly coverage: Coverage;
  /** Elements that are infinite or NaN, though their real values are finite numbers of the format. */
  readonly overflowed: number;
  /** Null where no element has a real value. */
  readonly rounding: OutputRounding | null;
}

/** The distance of an output's bits from its real values, absolute. */
export interface OutputRounding {
  readonly worst: number;
  /** The element with the largest, in row-major order. */
  readonly worstElement: number;
  readonly rms: number;
  /** The largest magnitude of the output's bits. */
  readonly largest: number;
  /** Elements whose error was attributed to places, and the largest relative part that was left over. */
  readonly sampled: number;
  readonly unattributed: number;
  /** In descending order. */
  readonly shares: readonly RoundingShare[];
}

/** An element of an output, whose heads and rows are counted within the batch and the head. */
export interface ElementPlace {
  readonly batch: number;
  readonly head: number;
  readonly row: number;
  /** 0 of the LSE. */
  readonly column: number;
}

/** How an output's real values relate to the contract's exact values. */
export interface AlgebraCertificate {
  /** The output: `out`, `lse`, `dq`, `dk`, `dv`, `final_state`. */
  readonly output: string;
  /** Rows that were compared, elements of them, and elements that have no real value. */
  readonly rows: number;
  readonly compared: number;
  readonly without: number;
  /** Elements of the compared whose values many laws do not have alike: they are finite, and have terms other than zeros. */
  readonly telling: number;
  /** Whether they are the values of one factor of q·k alone, of a recurrence of one factor of its gates. */
  readonly isFactorTold: boolean;
  /**
   * The largest |real − exact| with the kernel's own constants: of O relative to Σ p|v| / Σ p, of the LSE relative above 1, of a
   * gradient relative to the sum of the sizes of its terms, and as a function of what the kernel is given, of a recurrence relative to
   * the norm of the state's column, of its output also times those of the query and the scale.
   */
  readonly distance: number;
  /**
   * Where it is, a row of dK or dV being a key's and its head one of K, of a recurrence a token or, of its final state, a key dimension;
   * null where nothing is compared.
   */
  readonly worst: ElementPlace | null;
  /** The same with exact constants. */
  readonly idealDistance: number;
  /** The distance with idioms as they are computed; null where none was taken for a function. */
  readonly keptDistance: number | null;
  /** The distance up to which it holds. */
  readonly limit: number;
  /**
   * What the kernel takes for its constant: the factor of q·k in a power of two, as `scale·fp32(log2 e)`, that of the LSE's
   * logarithm, the one behind the sum of a gradient, or those of a recurrence; null where it is nothing known.
   */
  readonly constant: string | null;
  /** That constant's relative distance from the exact one, of a recurrence that of the gates' log2 e; null for the LSE and without gates. */
  readonly constantError: number | null;
  /** How a gradient's weights P are made, as `2^(scale·log2 e·q·k − lse·log2 e)`; null for O and the LSE. */
  readonly weights: string | null;
  /** Where the δ of dS = P∘(dP − δ) comes from; null for O, the LSE and dV. */
  readonly delta: string | null;
  readonly holds: boolean;
}

/** An output that the contract has and that is not compared. */
export interface UncomparedOutput {
  readonly output: string;
  /** A clause. */
  readonly reason: string;
}

/** Places that compute a function in a way of their own, which the algebra takes for the function itself. */
export interface IdiomCertificate {
  readonly function: 'exp2';
  readonly degree: number;
  /** The largest relative distance from the function over the range of the polynomial. */
  readonly distance: number;
  readonly places: readonly CountedPlace[];
}

/** Where two expressions part. */
export interface PartingPlaces {
  /** The element here, and the one that stands for it there. */
  readonly element: number;
  readonly otherElement: number;
  readonly here: CertificatePlace & { readonly what: string };
  readonly there: CertificatePlace & { readonly what: string };
}

/** An output as another run has it, by expressions. */
export interface SameOutput {
  readonly name: string;
  /** Rows that are compared, and rows whose query, keys and values the other launch has not. */
  readonly rows: number;
  readonly unpaired: number;
  readonly same: number;
  readonly other: number;
  readonly lost: number;
  /** Elements of equal bits among those of other expressions. */
  readonly otherWithEqualBits: number;
  /** Where the expressions of an element part: the first whose bits differ, else the first; null where none do. */
  readonly parting: PartingPlaces | null;
}

/** The comparison with another launch by expressions. */
export interface SameCertificate {
  readonly path: string;
  readonly outputs: readonly SameOutput[];
}

/** The comparison with random schedules of the launch by expressions. */
export interface ScheduleCertificate {
  /** Schedules beside the first. */
  readonly runs: number;
  /** Those that have illegal findings or no end, where the first has none of these. */
  readonly failed: readonly string[];
  /** In the schedule that has most of each. */
  readonly outputs: readonly (Pick<
    SameOutput,
    'name' | 'rows' | 'other' | 'lost' | 'otherWithEqualBits'
  > & {
    /** Schedules in which a row has another expression. */
    readonly schedules: number;
    /** The first of them, and where expressions part; null for none. */
    readonly first: (PartingPlaces & { readonly schedule: string }) | null;
  })[];
}

/** What a launch is to compute. */
export type CertificateContract =
  { readonly kind: 'attention' } | { readonly kind: 'recurrent'; readonly family: RecurrentFamily };

/** A launch of a chain. */
export interface ChainedLaunch {
  readonly path: string;
  readonly entry: string;
  readonly grid: readonly number[];
  readonly pass: boolean;
}

/** What the parts of a certificate come to. */
export type CertificateStatus = 'certified' | 'refuted' | 'incomplete';

/** What a run of a launch proves, and of what it says nothing. */
export interface Certificate extends DocumentHead<'certificate'> {
  readonly status: CertificateStatus;
  /** The reasons that it is refuted or incomplete, a clause each. */
  readonly reasons: readonly string[];
  readonly launch: {
    readonly path: string;
    readonly entry: string;
    readonly architecture: string;
    readonly grid: readonly number[];
  };
  /** The launches of a chain, of which `launch` is the last; null for a launch by itself. */
  readonly chain: readonly ChainedLaunch[] | null;
  /** Memory and order: the verdict of the run, of a chain of all launches, and whether it speaks for all schedules. */
  readonly run: RunVerdict & {
    /** Whether the outputs and the end are those of every schedule. */
    readonly speaksForAllSchedules: boolean;
    /** Races that change no output, by the lines of the PTX: they do not count in the verdict. */
    readonly harmlessRaces: readonly {
      readonly launch: number | null;
      readonly lines: readonly number[];
      readonly races: number;
    }[];
  };
  readonly outputs: readonly OutputCertificate[];
  /** Null where none is given. */
  readonly contract: CertificateContract | null;
  /** Null where no contract is given. */
  readonly algebra: readonly AlgebraCertificate[] | null;
  readonly uncompared: readonly UncomparedOutput[];
  /** By function, degree and distance. */
  readonly idioms: readonly IdiomCertificate[];
  /** What reaches O, the LSE and final states that must not, by the contract's names; null where no contract is given. */
  readonly influence: readonly OutputReach[] | null;
  readonly same: SameCertificate | null;
  /** Null where none were asked for. */
  readonly schedules: ScheduleCertificate | null;
  /** Places that decide by values, in the order of the run. */
  readonly decisions: readonly CountedPlace[];
  /** Places that lose values which had a meaning. */
  readonly losses: readonly CountedPlace[];
  /** What was followed, for a reader of costs. */
  readonly followed: { readonly values: number; readonly products: number };
  /** What it does not speak of, a clause each. */
  readonly silent: readonly string[];
}
