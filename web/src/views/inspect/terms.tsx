// The scores of the chosen head as the sum of four terms: content and position of the query with those of the key.
import { drawn, Figure } from '../../figures/figure';
import { setParams, useParam } from '../../route';
import { Inspection } from '../../types';
import { Failure, Panel } from '../../ui/blocks';
import { Button, Segments, Select } from '../../ui/controls';
import { InspectState } from './state';
import { TermBars, TermTable } from './term_bars';
import { TermMaps } from './term_maps';
import { SharesOfHeads, TermLegend } from './term_shares';
import { rowData, TermsState } from './terms_data';

export function Terms({ state, inspection, terms }: { state: InspectState; inspection: Inspection; terms: TermsState }) {
  const [view, setView] = useParam('terms');
  const { open, found, head, row, loaded } = terms;
  const drawing = inspection.image ? 'maps' : 'bars',
    shown = view === 'table' ? 'table' : drawing;
  return (
    <Panel
      title="Content and position"
      about="Scores as the sum of four terms: content and position of the query with those of the key."
      actions={
        <>
          {row && <Segments label="Draw as" value={shown} options={[drawing, 'table']} onChange={setView} />}
          <Button onClick={() => setView(open ? '' : drawing)}>{open ? 'Hide' : 'Show'}</Button>
        </>
      }
    >
      {open && (loaded.error && !state.overview.loading ? <Failure error={loaded.error} /> : !row && <p class="muted">Computing.</p>)}
      {found && head && row && !loaded.error && (
        <div class="stack">
          <div>
            <h3>
              Layer {head.layer}, head {head.head}
            </h3>
            <TermLegend shares={head.shares} image={!!inspection.image} />
          </div>
          <OneQuery state={state} inspection={inspection} terms={terms} shown={shown} />
          {found.heads.length > 1 && <SharesOfHeads state={state} found={found} />}
          <p class="muted small">
            Share: of the variance of the scores over the keys, all queries together. The shares of a head add up to 100%; a term that works
            against the others has a negative share, drawn paler.
          </p>
        </div>
      )}
    </Panel>
  );
}

function OneQuery({ state, inspection, terms, shown }: { state: InspectState; inspection: Inspection; terms: TermsState; shown: string }) {
  const row = terms.row!,
    head = terms.head!,
    queries = terms.found!.queries;
  const label = `Terms of the scores, layer ${state.layer}, head ${state.head}, query ${queries[row.query]}`;
  const draw = (width: number, legend = false) =>
    inspection.image ? (
      <TermMaps row={row} image={inspection.image} width={Math.min(width, 620)} label={label} />
    ) : (
      <TermBars row={row} width={width} label={label} legend={legend} />
    );
  const others = row.keys.length - row.unseen.size - row.shown.length;
  return (
    <div class="stack tight">
      <div class="term-query">
        <Select
          name="Query"
          value={String(terms.query)}
          options={queries.map((text, i) => ({ value: String(i), text: `${text} (${i})` }))}
          onChange={query => setParams({ query })}
        />
      </div>
      <Figure data={() => rowData(row, head, queries)} svg={() => drawn(draw(620, true))}>
        {width => (shown === 'table' ? <TermTable row={row} /> : draw(width))}
      </Figure>
      <p class="muted small">
        {shown === 'table'
          ? 'The terms, their sum before masks and softmax, and the weight.'
          : inspection.image
            ? 'Each term less its mean over the patches, which the weights do not depend on. The last map is on a scale of its own.'
            : 'Each term less its mean over the keys, which the weights do not depend on. The mark is their sum.'}
        {others > 0 && (shown === 'table' || !inspection.image) && ` ${others} keys with smaller weights are in the exported file.`}
      </p>
    </div>
  );
}
