/** How it is known that the models of {@link specialFunctions} hold for an architecture. */
export interface SpecialFunctionEvidence {
  /** `silicon`: every input was compared with that architecture. `assumed`: none was. */
  readonly evidence: 'silicon' | 'assumed';
  /** One line for reports. */
  readonly label: string;
}

/** The architectures that the models are used for. */
export type MufuArchitecture = 'sm_90' | 'sm_100' | 'sm_103';

const assumed: SpecialFunctionEvidence = {
  evidence: 'assumed',
  label: 'MUFU table from sm_90 silicon',
};

/**
 * For each architecture, what the models rest on. Only sm_90 was compared: all 2^32 inputs of the
 * fp32 instructions and all 65,536 of the 16-bit ones, on one H200 with driver 580.159.04. Whether
 * sm_100 and sm_103 give the same bits is not known.
 */
export const specialFunctionEvidence: {
  readonly [Name in MufuArchitecture]: SpecialFunctionEvidence;
} = {
  sm_90: { evidence: 'silicon', label: 'sm_90 silicon, every input' },
  sm_100: assumed,
  sm_103: assumed,
};
