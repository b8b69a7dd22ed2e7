// The lab: claims about attention, tested by experiment on this machine.
import { useGet } from '../../api';
import { link, useParam, useRoute } from '../../route';
import { Experiment, Verdict } from '../../types';
import { Await, Empty, PageHead } from '../../ui/blocks';
import { TextField } from '../../ui/controls';
import { Sentence } from '../../ui/math';
import { ExperimentPage } from './experiment';

export const verdictText: Record<Verdict, string> = { holds: 'holds', corrected: 'corrected', fails: 'fails' };
export const verdictKind: Record<Verdict, string> = { holds: 'good', corrected: 'warn', fails: 'bad' };

export function Lab() {
  const { path } = useRoute();
  const list = useGet<{ experiments: Experiment[] }>('/api/lab');
  return (
    <Await from={list}>
      {({ experiments }) => {
        if (!path[0]) return <List experiments={experiments} />;
        const at = experiments.findIndex(each => each.number === path[0] || each.name === path[0]);
        return at < 0 ? (
          <Empty title={`There is no experiment ${path[0]}`}>
            <a href={link('lab')}>All experiments</a>
          </Empty>
        ) : (
          <ExperimentPage
            key={experiments[at].name}
            experiment={experiments[at]}
            previous={experiments[at - 1]}
            next={experiments[at + 1]}
          />
        );
      }}
    </Await>
  );
}

function List({ experiments }: { experiments: Experiment[] }) {
  const [filter, setFilter] = useParam('filter');
  const shown = experiments.filter(each =>
    `${each.number} ${each.name} ${each.title} ${each.claim} ${each.topic}`.toLowerCase().includes(filter.toLowerCase()),
  );
  const topics = [...new Set(shown.map(each => each.topic))];
  return (
    <>
      <PageHead
        title="Lab"
        about="Claims about attention, including published ones that are wrong. Each is tested here by experiment; sliders change its settings."
      />
      <div class="stack">
        <div class="toolbar">
          <TextField name="Find" type="search" value={filter} onChange={setFilter} placeholder="softmax, convolution, heads" />
        </div>
        {topics.map(topic => (
          <section key={topic}>
            <h2 class="topic">{topic}</h2>
            <ul class="cards">
              {shown
                .filter(each => each.topic === topic)
                .map(each => (
                  <li key={each.name}>
                    <a class="card" href={link('lab', [each.number])}>
                      <span class="row between">
                        <span class="muted small number">{each.number}</span>
                        {each.expected !== 'holds' && (
                          <span class={`badge ${verdictKind[each.expected]}`}>{verdictText[each.expected]}</span>
                        )}
                      </span>
                      <b>{each.title}</b>
                      <span class="muted small">
                        <Sentence text={each.claim} />
                      </span>
                    </a>
                  </li>
                ))}
            </ul>
          </section>
        ))}
        {shown.length === 0 && <Empty title="No experiment matches">Try another word.</Empty>}
      </div>
    </>
  );
}
