/* SPDX-License-Identifier: Apache-2.0 */

/* A traced packet as a document. What is here is promised by portolan.8: members are added, not changed. */

#include "inspect/explain_doc.h"
#include "inspect/trace_report.h"

static void put_prediction(struct doc *doc, const struct trace_report *report)
{
	doc_open_map(doc, "explain");
	doc_bool(doc, "compared", report->explanation);
	if (report->explanation)
		doc_bool(doc, "same", !report->difference);
	if (report->difference)
		doc_string(doc, "difference", report->difference);
	doc_close(doc);
}

/* As it was seen last: behind all rules, where it came so far. */
static void put_result(struct doc *doc, const struct trace *trace)
{
	doc_string(doc, "verdict", trace_verdict_name(trace));
	doc_string(doc, "lastHook", hook_name(trace->hook));
	doc_bool(doc, "firstPacket", trace->first);
	if (trace->translated)
		explain_doc_endpoint(doc, "endpoint", &trace->now.destination, trace->now.port);
	explain_doc_endpoint(doc, "sourceSeen", &trace->now.source, trace->now.source_port);
	doc_bool(doc, "masquerade", trace->masqueraded);
	if (trace->masqueraded_at != SIZE_MAX)
		doc_string(doc, "masqueradeRule", trace->steps[trace->masqueraded_at].rule);
	doc_bool(doc, "clientRemembered", trace->remembered);
}

void trace_doc(const struct trace_report *report, struct doc *doc, const char *key)
{
	const struct trace *trace = report->trace;

	doc_open_map(doc, key);
	explain_doc_packet(doc, &trace->packet);
	doc_number(doc, "sourcePort", trace->source_port);
	doc_string(doc, "interface", trace->packet.interface);
	explain_doc_service(doc, report->explanation);
	put_result(doc, trace);
	explain_doc_steps(doc, trace->steps, trace->n_steps);
	put_prediction(doc, report);
	doc_string(doc, "summary", report->summary);
	doc_close(doc);
}
