// The official Node.js client, @google-cloud/aiplatform, in both of its versions of the API.

'use strict';

const assert = require('node:assert/strict');
const {createRequire} = require('node:module');
const path = require('node:path');
const {after, describe, it} = require('node:test');

// The client is installed outside the repository.
const installed = createRequire(path.join(process.env.CLIENT_HOME, 'package.json'));
const aiplatform = installed('@google-cloud/aiplatform');
const {grpc} = installed('google-gax');

const [host, port] = process.env.SERVER_ADDRESS.split(':');
const [reef, greetings] = require('../known_vertex_scores.json').cases;
const verdicts = require('../judge_verdicts.json');

const location = 'projects/any/locations/us-central1';
const near = (actual, expected) => {
  assert.equal(actual.length, expected.length);
  actual.forEach((score, i) => assert.ok(Math.abs(score - expected[i]) < 5e-7, `${actual} is not ${expected}`));
};
const pairs = texts => texts.map(([prediction, reference]) => ({prediction, reference}));

for (const version of ['v1', 'v1beta1']) {
  describe(version, () => {
    const client = new aiplatform[version].EvaluationServiceClient({
      apiEndpoint: host,
      port: Number(port),
      sslCreds: grpc.credentials.createInsecure(),
    });
    after(() => client.close());

    const ask = async request => (await client.evaluateInstances({location, ...request}))[0];

    it('gives a score to equal texts and a zero to different ones', async () => {
      const instances = pairs([['a b', 'a b'], ['a b', 'A b']]);
      const answer = await ask({exactMatchInput: {metricSpec: {}, instances}});
      assert.equal(answer.evaluationResults, 'exactMatchResults');
      assert.deepEqual(answer.exactMatchResults.exactMatchMetricValues.map(value => value.score), [1, 0]);
    });

    it('gives the BLEU that Vertex gave', async () => {
      const answer = await ask({bleuInput: {metricSpec: {}, instances: pairs(greetings.pairs)}});
      const scores = answer.bleuResults.bleuMetricValues.map(value => value.score);
      near(scores, greetings.recorded['bleu (BleuSpec{})'].scores);
    });

    for (const rougeType of ['rougeL', 'rougeLsum']) {
      it(`gives the ${rougeType} that Vertex gave`, async () => {
        const instances = pairs(reef.predictions.map(prediction => [prediction, reef.reference]));
        const answer = await ask({rougeInput: {metricSpec: {rougeType}, instances}});
        const scores = answer.rougeResults.rougeMetricValues.map(value => value.score);
        near(scores, reef.recorded[rougeType].scores);
      });
    }

    it('compares tool calls', async () => {
      const call = args => JSON.stringify({content: '', tool_calls: [{name: 'book', arguments: args}]});
      const instances = pairs([[call({city: 'Rome', nights: 2}), call({city: 'Rome', nights: 3})]]);
      const answer = await ask({toolParameterKvMatchInput: {metricSpec: {}, instances}});
      // Of the parameters city and nights, one has an equal value.
      assert.equal(answer.toolParameterKvMatchResults.toolParameterKvMatchMetricValues[0].score, 0.5);
    });

    it('reads the verdicts of the judge', async () => {
      const {prediction, context} = verdicts.instance;
      const {groundednessResult} = await ask({groundednessInput: {metricSpec: {}, instance: {prediction, context}}});
      const {score, explanation, confidence} = groundednessResult;
      assert.deepEqual({score, explanation, confidence}, verdicts.pointwise.groundedness);
      const pair = {
        prediction,
        context,
        baselinePrediction: verdicts.instance.baseline_prediction,
        instruction: verdicts.instance.instruction,
      };
      const answer = await ask({pairwiseSummarizationQualityInput: {metricSpec: {}, instance: pair}});
      const expected = verdicts.pairwise.pairwise_summarization_quality;
      assert.equal(answer.pairwiseSummarizationQualityResult.pairwiseChoice, expected.pairwise_choice);
      assert.equal(answer.pairwiseSummarizationQualityResult.confidence, expected.confidence);
    });

    it('names the field of a wrong request', async () => {
      const instances = pairs([['a', 'a']]);
      await assert.rejects(ask({rougeInput: {metricSpec: {rougeType: 'rouge0'}, instances}}), error => {
        assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
        const fields = error.statusDetails.flatMap(detail => detail.fieldViolations).map(violation => violation.field);
        assert.deepEqual(fields, ['rouge_input.metric_spec.rouge_type']);
        return true;
      });
    });

    if (version === 'v1beta1') {
      it('compares trajectories', async () => {
        const trajectory = names => ({
          toolCalls: names.map(toolName => ({toolName, toolInput: JSON.stringify({of: toolName})})),
        });
        const instances = [
          {
            predictedTrajectory: trajectory(['search', 'weather', 'book']),
            referenceTrajectory: trajectory(['search', 'book']),
          },
        ];
        const answer = await ask({trajectoryPrecisionInput: {metricSpec: {}, instances}});
        // Two of the three predicted calls are in the reference.
        near([answer.trajectoryPrecisionResults.trajectoryPrecisionMetricValues[0].score], [2 / 3]);
      });

      it('has a result for every metric of the unified form', async () => {
        const answer = await ask({
          metrics: [{exactMatchSpec: {}}, {rougeSpec: {rougeType: 'rouge1'}}],
          instance: {response: {text: 'the cat'}, reference: {text: 'the cat sat'}},
        });
        // ROUGE: precision 2/2, recall 2/3.
        near(answer.metricResults.map(result => result.score), [0, 0.8]);
      });
    }
  });
}
