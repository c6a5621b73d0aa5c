"""The frameworks whose agents are models: `FRAMEWORKS`, in the order in which they are tried."""

from __future__ import annotations

from msgspec import Struct


class Framework(Struct, frozen=True):
    """A framework whose agents are models.

    ``agent_class`` is the module and name of the class, or of a base class, of its agents. ``package`` is the
    framework's distribution, ``minimum`` its oldest supported version. ``model`` is the module in `toolcall_nb.agents`
    and the name of the `AgentModel` there.
    """

    title: str
    agent_class: tuple[str, str]
    package: str
    minimum: str
    model: tuple[str, str]


FRAMEWORKS: tuple[Framework, ...] = (
    Framework(
        title="pydantic-ai's Agent",
        agent_class=("pydantic_ai.agent.abstract", "AbstractAgent"),
        package="pydantic-ai-slim",
        minimum="2.68",
        model=("pydantic_ai_agent", "PydanticAIAgent"),
    ),
    Framework(
        title="the OpenAI Agents SDK's Agent",
        agent_class=("agents.agent", "AgentBase"),
        package="openai-agents",
        minimum="0.24",
        model=("openai_agent", "OpenAIAgent"),
    ),
    Framework(
        title="LangGraph's graphs (such as LangChain's create_agent)",
        agent_class=("langgraph.pregel.main", "Pregel"),
        package="langgraph",
        minimum="1.2",
        model=("langgraph_agent", "LangGraphAgent"),
    ),
    Framework(
        title="LlamaIndex's FunctionAgent, ReActAgent and CodeActAgent",
        agent_class=("llama_index.core.agent.workflow.base_agent", "BaseWorkflowAgent"),
        package="llama-index-core",
        minimum="0.14",
        model=("llama_index_agent", "LlamaIndexAgent"),
    ),
    Framework(
        title="LlamaIndex's AgentWorkflow",
        agent_class=("llama_index.core.agent.workflow.multi_agent_workflow", "AgentWorkflow"),
        package="llama-index-core",
        minimum="0.14",
        model=("llama_index_agent", "LlamaIndexAgent"),
    ),
    Framework(
        title="smolagents' ToolCallingAgent and CodeAgent",
        agent_class=("smolagents.agents", "MultiStepAgent"),
        package="smolagents",
        minimum="1.26",
        model=("smolagents_agent", "SmolagentsAgent"),
    ),
    Framework(
        title="the Claude Agent SDK's ClaudeSDKClient",
        agent_class=("claude_agent_sdk.client", "ClaudeSDKClient"),
        package="claude-agent-sdk",
        minimum="0.2",
        model=("claude_agent", "ClaudeAgent"),
    ),
    Framework(
        title="Google ADK's Agent",
        agent_class=("google.adk.agents.base_agent", "BaseAgent"),
        package="google-adk",
        minimum="2.13",
        model=("adk_agent", "AdkAgent"),
    ),
)
"""All frameworks. The first one with a base class of the object takes it."""
