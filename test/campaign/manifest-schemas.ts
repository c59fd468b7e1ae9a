/**
 * JSON Schemas (2020-12) of the parts of manifests that matter here. Sources: GitHub's workflow syntax,
 * the Kubernetes API reference of batch/v1 Job, GitLab's CI/CD YAML syntax reference.
 */
const text = { type: 'string', minLength: 1 };
const texts = { type: 'array', items: text, minItems: 1 };

const step = {
  type: 'object',
  additionalProperties: false,
  properties: {
    name: text,
    if: text,
    uses: { type: 'string', pattern: '^[\\w-]+/[\\w-]+@v\\d+$' },
    run: text,
    with: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
  },
  oneOf: [{ required: ['uses'] }, { required: ['run'] }],
};

const githubJob = {
  type: 'object',
  additionalProperties: false,
  required: ['runs-on', 'steps'],
  properties: {
    'runs-on': text,
    'timeout-minutes': { type: 'integer', minimum: 1, maximum: 360 },
    needs: text,
    if: text,
    strategy: {
      type: 'object',
      additionalProperties: false,
      required: ['fail-fast', 'matrix'],
      properties: {
        'fail-fast': { const: false },
        matrix: {
          type: 'object',
          additionalProperties: false,
          required: ['shard'],
          properties: { shard: { type: 'array', items: { type: 'integer', minimum: 1 } } },
        },
      },
    },
    steps: { type: 'array', items: step, minItems: 1 },
  },
};

/** A workflow with shards in a matrix, and a job that merges them even when one fails. */
export const githubWorkflow = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'on', 'permissions', 'env', 'jobs'],
  properties: {
    name: text,
    on: { type: 'object', minProperties: 1 },
    permissions: { const: { contents: 'read' } },
    env: {
      type: 'object',
      required: ['SHARDS'],
      properties: { SHARDS: { type: 'integer', minimum: 1 } },
    },
    jobs: {
      type: 'object',
      additionalProperties: false,
      required: ['check', 'merge'],
      properties: {
        check: githubJob,
        merge: {
          allOf: [
            githubJob,
            {
              type: 'object',
              required: ['needs', 'if'],
              properties: { needs: { const: 'check' }, if: { const: '${{ !cancelled() }}' } },
            },
          ],
        },
      },
    },
  },
};

const container = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'image', 'command', 'args', 'volumeMounts'],
  properties: {
    name: { type: 'string', pattern: '^[a-z0-9-]+$' },
    image: text,
    workingDir: text,
    command: texts,
    args: texts,
    env: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'value'],
        // The API takes no numbers here.
        properties: { name: text, value: { type: 'string' } },
      },
    },
    resources: { type: 'object' },
    volumeMounts: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'mountPath'],
        properties: { name: text, mountPath: { type: 'string', pattern: '^/' } },
      },
    },
  },
};

const template = {
  type: 'object',
  additionalProperties: false,
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      additionalProperties: false,
      required: ['restartPolicy', 'containers', 'volumes'],
      properties: {
        // Pod failure policies ask for it.
        restartPolicy: { const: 'Never' },
        containers: { type: 'array', items: container, minItems: 1 },
        volumes: { type: 'array', minItems: 1 },
      },
    },
  },
};

function jobOf(properties: object, required: readonly string[]): object {
  return {
    type: 'object',
    additionalProperties: false,
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    properties: {
      apiVersion: { const: 'batch/v1' },
      kind: { const: 'Job' },
      metadata: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string', pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' } },
      },
      spec: {
        type: 'object',
        additionalProperties: false,
        required: [...required, 'template'],
        properties: { ...properties, template },
      },
    },
  };
}

/** A plain job. */
export const job = jobOf({ backoffLimit: { const: 0 } }, []);

const positive = { type: 'integer', minimum: 1 };

/** An indexed job that fails an index on exit statuses of flashproof, and ignores evictions. */
export const indexedJob = jobOf(
  {
    completionMode: { const: 'Indexed' },
    completions: positive,
    parallelism: positive,
    backoffLimitPerIndex: positive,
    maxFailedIndexes: positive,
    podFailurePolicy: {
      type: 'object',
      additionalProperties: false,
      required: ['rules'],
      properties: {
        rules: {
          type: 'array',
          maxItems: 20,
          items: {
            type: 'object',
            required: ['action'],
            additionalProperties: false,
            properties: {
              action: { enum: ['Ignore', 'FailIndex', 'FailJob', 'Count'] },
              onPodConditions: {
                type: 'array',
                items: { type: 'object', required: ['type'], properties: { type: text } },
              },
              onExitCodes: {
                type: 'object',
                additionalProperties: false,
                required: ['operator', 'values'],
                properties: {
                  containerName: text,
                  operator: { enum: ['In', 'NotIn'] },
                  // Ascending, and no 0 with In.
                  values: { const: [1, 2] },
                },
              },
            },
            oneOf: [{ required: ['onExitCodes'] }, { required: ['onPodConditions'] }],
          },
        },
      },
    },
  },
  ['completionMode', 'completions', 'parallelism', 'backoffLimitPerIndex', 'podFailurePolicy'],
);

const artifacts = {
  type: 'object',
  additionalProperties: false,
  required: ['when', 'paths'],
  properties: {
    when: { const: 'always' },
    paths: texts,
    reports: {
      type: 'object',
      additionalProperties: false,
      required: ['junit'],
      properties: { junit: text },
    },
  },
};

/** A pipeline with a parallel job, and one that reports even when a shard fails. */
export const gitlabPipeline = {
  type: 'object',
  additionalProperties: false,
  required: ['stages', 'flashproof', 'flashproof-report'],
  properties: {
    stages: { const: ['check', 'report'] },
    default: { type: 'object', required: ['image'], properties: { image: text } },
    flashproof: {
      type: 'object',
      additionalProperties: false,
      required: ['stage', 'parallel', 'script', 'artifacts'],
      properties: {
        stage: { const: 'check' },
        parallel: { type: 'integer', minimum: 1, maximum: 200 },
        tags: texts,
        script: texts,
        artifacts,
      },
    },
    'flashproof-report': {
      type: 'object',
      additionalProperties: false,
      required: ['stage', 'when', 'needs', 'script', 'artifacts'],
      properties: {
        stage: { const: 'report' },
        when: { const: 'always' },
        needs: { const: ['flashproof'] },
        script: texts,
        artifacts,
      },
    },
  },
};
