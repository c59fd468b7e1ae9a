/** The instructions that drive tensor cores, without shapes and operand types. */
export type TensorCoreInstruction = 'mma.sync' | 'wgmma' | 'tcgen05.mma';

/** Evidence that the models of `specialFunctions` hold for an architecture. */
export interface SpecialFunctionEvidence {
  /** `silicon`: every input was compared with that architecture. `assumed`: none was. */
  readonly evidence: 'silicon' | 'assumed';
  /** One line for reports. */
  readonly label: string;
}

/** Properties of an architecture that the models need. */
interface ArchitectureProfile {
  /** The instruction that its attention kernels drive the tensor cores with. */
  readonly tensorCore: TensorCoreInstruction;
  /** The most bytes of shared memory that one CTA can have. */
  readonly sharedBytes: number;
  /** Columns of 32 bits of a CTA's tensor memory; 0 where there is none. */
  readonly tensorMemoryColumns: number;
  /** Evidence for the models of the special functions; null where they are not used for it. */
  readonly specialFunctions: SpecialFunctionEvidence | null;
}

const silicon = { evidence: 'silicon', label: 'sm_90 silicon, every input' } as const;
const assumed = { evidence: 'assumed', label: 'MUFU table from sm_90 silicon' } as const;

/**
 * The architectures that are modelled: Ampere, Ada, Hopper, and of Blackwell the data centre's (sm_100, sm_103), Jetson Thor's (sm_110,
 * which was sm_101 before PTX 9.0) and that of GeForce RTX 50, RTX PRO and, as sm_121, DGX Spark (sm_120).
 *
 * Sources. Shared memory: CUDA C++ Programming Guide, technical specifications per compute capability
 * (1 KB of an SM's belongs to the system). Tensor memory: PTX ISA 9.2, "Tensor Memory" (section
 * 9.7.16.1), and its target notes: sm_120 has neither tensor memory nor tcgen05. Special functions: only sm_90 was compared: all 2^32
 * inputs of the fp32 instructions and all 65,536 of the 16-bit ones, on one H200 with driver 580.159.04. Whether Blackwell gives the same
 * bits is not known.
 */
export const architectures = {
  sm_80: {
    tensorCore: 'mma.sync',
    sharedBytes: 166_912,
    tensorMemoryColumns: 0,
    specialFunctions: null,
  },
  sm_89: {
    tensorCore: 'mma.sync',
    sharedBytes: 101_376,
    tensorMemoryColumns: 0,
    specialFunctions: null,
  },
  sm_90: {
    tensorCore: 'wgmma',
    sharedBytes: 232_448,
    tensorMemoryColumns: 0,
    specialFunctions: silicon,
  },
  sm_100: {
    tensorCore: 'tcgen05.mma',
    sharedBytes: 232_448,
    tensorMemoryColumns: 512,
    specialFunctions: assumed,
  },
  sm_103: {
    tensorCore: 'tcgen05.mma',
    sharedBytes: 232_448,
    tensorMemoryColumns: 512,
    specialFunctions: assumed,
  },
  sm_110: {
    tensorCore: 'tcgen05.mma',
    sharedBytes: 232_448,
    tensorMemoryColumns: 512,
    specialFunctions: assumed,
  },
  sm_120: {
    tensorCore: 'mma.sync',
    sharedBytes: 101_376,
    tensorMemoryColumns: 0,
    specialFunctions: assumed,
  },
} as const satisfies Readonly<Record<string, ArchitectureProfile>>;

/** An architecture, by the name that PTX gives it. */
export type Architecture = keyof typeof architectures;

/** All architectures, oldest first. */
export const architectureNames = Object.keys(architectures) as readonly Architecture[];

/** The architectures whose tensor cores are modelled. */
export type TensorCoreArchitecture = Architecture;

/** The architectures that the models of the special functions are used for. */
export type MufuArchitecture = Exclude<Architecture, 'sm_80' | 'sm_89'>;

/** The architectures with tensor memory. */
export type BlackwellArchitecture = Extract<Architecture, 'sm_100' | 'sm_103' | 'sm_110'>;

/** For each architecture, the evidence for the models of the special functions. */
export const specialFunctionEvidence: {
  readonly [Name in MufuArchitecture]: SpecialFunctionEvidence;
} = {
  sm_90: architectures.sm_90.specialFunctions,
  sm_100: architectures.sm_100.specialFunctions,
  sm_103: architectures.sm_103.specialFunctions,
  sm_110: architectures.sm_110.specialFunctions,
  sm_120: architectures.sm_120.specialFunctions,
};

/**
 * The reason why no instruction of a family runs on an architecture, a clause about the instruction; null where it has them. Source: PTX ISA,
 * target notes of the instructions; ptxas 13.4 takes each of them for these targets alone.
 *
 * @param name an instruction, as `tcgen05.alloc`, `wgmma.fence` or `mma.sync.kind::mxf4`
 */
export function lackOf(architecture: Architecture, name: string): string | null {
  const has = (one: Architecture): boolean => {
    if (name.startsWith('tcgen05.')) return architectures[one].tensorMemoryColumns > 0;
    if (name.startsWith('wgmma.')) return architectures[one].tensorCore === 'wgmma';
    return !name.startsWith('mma.sync.kind::') || one === 'sm_120';
  };
  if (has(architecture)) return null;
  return `which is not on ${architecture} but on ${architectureNames.filter(has).join(', ')}`;
}

/**
 * The Blackwell architecture whose rates and tuning stand for an architecture: itself, or sm_100 for
 * Hopper, whose arithmetic is used to emulate Blackwell's kernels where the captures are Hopper's.
 */
export function blackwellOf(architecture: 'sm_90' | BlackwellArchitecture): BlackwellArchitecture {
  return architecture === 'sm_90' ? 'sm_100' : architecture;
}
