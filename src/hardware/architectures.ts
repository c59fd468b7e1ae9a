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
 * The architectures that are modelled: Ampere, Ada, Hopper and two of Blackwell.
 *
 * Sources. Shared memory: CUDA C++ Programming Guide, technical specifications per compute capability
 * (1 KB of an SM's belongs to the system). Tensor memory: PTX ISA 9.2, "Tensor Memory" (section
 * 9.7.16.1). Special functions: only sm_90 was compared: all 2^32 inputs of the fp32 instructions and all
 * 65,536 of the 16-bit ones, on one H200 with driver 580.159.04. Whether sm_100 and sm_103 give the same
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
} as const satisfies Readonly<Record<string, ArchitectureProfile>>;

/** An architecture, by the name that PTX gives it. */
export type Architecture = keyof typeof architectures;

/** The architectures whose tensor cores are modelled. */
export type TensorCoreArchitecture = Architecture;

/** The architectures that the models of the special functions are used for. */
export type MufuArchitecture = Extract<Architecture, 'sm_90' | 'sm_100' | 'sm_103'>;

/** The architectures with tensor memory. */
export type BlackwellArchitecture = Extract<Architecture, 'sm_100' | 'sm_103'>;

/** For each architecture, the evidence for the models of the special functions. */
export const specialFunctionEvidence: {
  readonly [Name in MufuArchitecture]: SpecialFunctionEvidence;
} = {
  sm_90: architectures.sm_90.specialFunctions,
  sm_100: architectures.sm_100.specialFunctions,
  sm_103: architectures.sm_103.specialFunctions,
};

/**
 * The Blackwell architecture whose rates and tuning stand for an architecture: itself, or sm_100 for
 * Hopper, whose arithmetic is used to emulate Blackwell's kernels where the captures are Hopper's.
 */
export function blackwellOf(architecture: MufuArchitecture): BlackwellArchitecture {
  return architecture === 'sm_90' ? 'sm_100' : architecture;
}
